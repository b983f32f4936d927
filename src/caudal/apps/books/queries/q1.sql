-- Books on computers, 2000 to 2023, with "distributed" in the title
SELECT title, authors, publisher
FROM books
WHERE
    list_contains(categories, 'Computers')
    AND year BETWEEN 2000 AND 2023
    AND contains(lower(title), lower($word))
ORDER BY title, authors, publisher
