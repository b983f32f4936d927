-- Films of 2000 to 2009 that Argentina and Spain produced together
SELECT title, genres
FROM movies
WHERE
    year(release_date) BETWEEN $from_year AND $to_year
    AND list_contains(countries, $country)
    AND list_contains(countries, $partner)
ORDER BY title, genres, id
