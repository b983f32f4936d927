-- One row for each film: the names of its cast (not of its crew).
SELECT
    id, actors,
    CASE
        WHEN id IS NULL THEN 'id is not an integer'
        WHEN actors IS NULL THEN 'cast is not a list of names'
    END AS reject
FROM (
    SELECT
        to_integer(raw.id) AS id,
        CASE WHEN raw."cast" IS NULL THEN [] ELSE names(raw."cast") END AS actors
    FROM raw
)
