-- The ten actors with most appearances in Argentine films since 2000
SELECT actor, count(*) AS films
FROM (
    SELECT unnest(c.actors) AS actor
    FROM movies AS m
    JOIN credits AS c ON c.id = m.id
    WHERE list_contains(m.countries, $country) AND year(m.release_date) >= $since_year
)
GROUP BY actor
ORDER BY films DESC, actor
LIMIT $top_actors
