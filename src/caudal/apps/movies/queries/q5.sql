-- Mean return on budget of films with a positive and with a negative overview
WITH means AS (
    SELECT
        CASE WHEN sentiment(overview) >= $positive_from THEN 'POSITIVE' ELSE 'NEGATIVE' END AS sentiment,
        CAST(sum(CAST(revenue / budget AS DECIMAL(38, 20))) / count(*) AS DOUBLE) AS mean_ratio
    FROM movies
    WHERE budget <> 0 AND revenue <> 0
    GROUP BY 1
)
SELECT kinds.sentiment, means.mean_ratio
FROM (VALUES ('POSITIVE'), ('NEGATIVE')) AS kinds (sentiment)
LEFT JOIN means ON means.sentiment = kinds.sentiment
ORDER BY kinds.sentiment DESC
