-- The best and the worst rated Argentine film since 2000
WITH means AS (
    SELECT m.id, m.title, sum(r.rating) / count(*) AS rating
    FROM movies AS m
    JOIN ratings AS r ON r.movie_id = m.id
    WHERE list_contains(m.countries, $country) AND year(m.release_date) >= $since_year
    GROUP BY m.id, m.title
),
ends AS (
    SELECT
        (SELECT {'title': title, 'rating': rating}
         FROM means ORDER BY rating DESC, id, title LIMIT 1) AS best,
        (SELECT {'title': title, 'rating': rating}
         FROM means ORDER BY rating, id, title LIMIT 1) AS worst
)
SELECT 'MAX' AS kind, best.title AS title, best.rating AS rating FROM ends
UNION ALL
SELECT 'MIN' AS kind, worst.title AS title, worst.rating AS rating FROM ends
ORDER BY kind
