-- Titles are more than white space
SELECT title, authors, year
FROM books
WHERE trim(title) = ''
ORDER BY title, authors, year
