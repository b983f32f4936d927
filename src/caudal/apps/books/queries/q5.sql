-- Fiction in the top decile of mean review sentiment
WITH means AS (
    SELECT
        title,
        sum(CAST(sentiment(text) AS DECIMAL(18, 17))) / count(*) AS mean_sentiment
    FROM reviews
    WHERE title IN (SELECT title FROM books WHERE list_contains(categories, $category))
    GROUP BY title
)
SELECT title
FROM means
WHERE mean_sentiment >= (SELECT quantile_cont(mean_sentiment, $quantile) FROM means)
ORDER BY title
