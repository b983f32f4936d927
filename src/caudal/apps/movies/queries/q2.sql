-- The five countries with the largest budgets spent without a partner
SELECT countries[1] AS country, CAST(sum(budget) AS DOUBLE) AS budget
FROM movies
WHERE len(countries) = 1
GROUP BY countries[1]
ORDER BY sum(budget) DESC, country
LIMIT $top_countries
