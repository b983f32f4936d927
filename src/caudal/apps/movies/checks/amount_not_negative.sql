-- Budgets and revenues are not negative
SELECT id, title, budget, revenue
FROM movies
WHERE budget < 0 OR revenue < 0
ORDER BY id, title, budget, revenue
