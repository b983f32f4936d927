-- One row for each film. Lists keep the names only. Amounts are decimals, so that sums are exact:
-- one that a decimal cannot hold, or holds as zero although it is not, is out of range.
SELECT
    id, title, genres, countries, languages, release_date, budget, revenue, overview,
    CASE
        WHEN id IS NULL THEN 'id is not an integer'
        WHEN release_date IS NULL THEN 'release_date is not a YYYY-MM-DD date'
        WHEN NOT coalesce(isfinite(budget_value), FALSE) THEN 'budget is not a number'
        WHEN NOT coalesce(isfinite(revenue_value), FALSE) THEN 'revenue is not a number'
        WHEN budget IS NULL OR (budget = 0) <> (budget_value = 0) THEN 'budget is out of range'
        WHEN revenue IS NULL OR (revenue = 0) <> (revenue_value = 0) THEN 'revenue is out of range'
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
        TRY_CAST(number_text(raw.budget) AS DECIMAL(38, 6)) AS budget,
        TRY_CAST(number_text(raw.revenue) AS DECIMAL(38, 6)) AS revenue,
        TRY_CAST(number_text(raw.budget) AS DOUBLE) AS budget_value,
        TRY_CAST(number_text(raw.revenue) AS DOUBLE) AS revenue_value,
        raw.overview AS overview
    FROM raw
)
