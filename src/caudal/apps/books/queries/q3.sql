-- Books of the 1990s with at least 500 reviews
SELECT b.title, b.authors
FROM books AS b
JOIN (
    SELECT title, count(*) AS reviews, sum(score) AS score FROM reviews GROUP BY title
) AS r ON r.title = b.title
WHERE b.year BETWEEN $decade AND $decade + 9 AND r.reviews >= $min_reviews
ORDER BY b.title, b.authors
