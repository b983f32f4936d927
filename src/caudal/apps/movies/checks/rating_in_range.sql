-- Ratings are from 0.5 to 5 stars
SELECT user_id, movie_id, rating
FROM ratings
WHERE rating NOT BETWEEN 0.5 AND 5
ORDER BY user_id, movie_id, rating
