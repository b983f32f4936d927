-- One row for each rating. Decimals, so that sums are exact whatever their order.
SELECT
    user_id, movie_id, rating,
    CASE
        WHEN user_id IS NULL THEN 'userId is not an integer'
        WHEN movie_id IS NULL THEN 'movieId is not an integer'
        WHEN rating IS NULL THEN 'rating is not a number'
    END AS reject
FROM (
    SELECT
        to_integer(raw.userId) AS user_id,
        to_integer(raw.movieId) AS movie_id,
        TRY_CAST(number_text(raw.rating) AS DECIMAL(18, 9)) AS rating
    FROM raw
)
