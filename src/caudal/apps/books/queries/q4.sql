-- The ten books of the 1990s with at least 500 reviews and the best mean score
SELECT b.title, r.score / r.reviews AS mean_score
FROM books AS b
JOIN (
    SELECT title, count(*) AS reviews, sum(score) AS score FROM reviews GROUP BY title
) AS r ON r.title = b.title
WHERE b.year BETWEEN $decade AND $decade + 9 AND r.reviews >= $min_reviews
ORDER BY mean_score DESC, b.title, b.authors
LIMIT $top_books
