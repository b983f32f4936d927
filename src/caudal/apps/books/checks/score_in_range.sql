-- Scores are from 1 to 5
SELECT title, score
FROM reviews
WHERE score NOT BETWEEN 1 AND 5
ORDER BY title, score
