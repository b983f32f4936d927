-- One row for each book. The year is the first four digits in a row of its date.
SELECT
    title, authors, publisher, categories, year,
    CASE
        WHEN title IS NULL THEN 'Title is empty'
        WHEN authors_text IS NULL THEN 'authors is empty'
        WHEN categories_text IS NULL THEN 'categories is empty'
        WHEN year IS NULL THEN 'publishedDate has no four-digit year'
        WHEN authors IS NULL THEN 'authors is not a list'
        WHEN categories IS NULL THEN 'categories is not a list'
    END AS reject
FROM (
    SELECT
        raw."Title" AS title,
        raw.authors AS authors_text,
        raw.categories AS categories_text,
        items(raw.authors) AS authors,
        raw.publisher AS publisher,
        items(raw.categories) AS categories,
        TRY_CAST(regexp_extract(raw."publishedDate", '[0-9]{4}') AS INTEGER) AS year
    FROM raw
)
