-- One row for each review. Decimals, so that sums are exact whatever their order.
SELECT
    title, score, text,
    CASE
        WHEN title IS NULL THEN 'Title is empty'
        WHEN score IS NULL THEN 'review/score is not a number'
    END AS reject
FROM (
    SELECT
        raw."Title" AS title,
        TRY_CAST(number_text(raw."review/score") AS DECIMAL(18, 9)) AS score,
        raw."review/text" AS text
    FROM raw
)
