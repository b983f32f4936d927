-- One row for each film. Lists keep the names only.
SELECT
    id, title, genres, countries, languages, release_date, budget, revenue, overview,
    CASE
        WHEN id IS NULL THEN 'id is not an integer'
        WHEN release_date IS NULL THEN 'release_date is not a YYYY-MM-DD date'
        WHEN budget IS NULL THEN 'budget is not a number'
        WHEN revenue IS NULL THEN 'revenue is not a number'
        WHEN title IS NULL THEN 'title is empty'
        WHEN genres_text IS NULL THEN 'genres is empty'
        WHEN overview IS NULL THEN 'overview is empty'
        WHEN countries_text IS NULL THEN 'production_countries is empty'
        WHEN languages_text IS NULL THEN 'spoken_languages is empty'
        WHEN genres IS NULL THEN 'genres is not a list of names'
        WHEN countries IS NULL THEN 'production_countries is not a list of names'
        WHEN languages IS NULL THEN 'spoken_languages is not a list of names'
    END AS reject
FROM (
    SELECT
        to_integer(raw.id) AS id,
        raw.title AS title,
        raw.genres AS genres_text,
        raw.production_countries AS countries_text,
        raw.spoken_languages AS languages_text,
        names(raw.genres) AS genres,
        names(raw.production_countries) AS countries,
        names(raw.spoken_languages) AS languages,
        CASE
            WHEN raw.release_date GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]'
            THEN TRY_CAST(raw.release_date AS DATE)
        END AS release_date,
        TRY_CAST(raw.budget AS DECIMAL(38, 6)) AS budget,
        TRY_CAST(raw.revenue AS DECIMAL(38, 6)) AS revenue,
        raw.overview AS overview
    FROM raw
)
