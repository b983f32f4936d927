-- Books on computers, 2000 to 2023, with "distributed" in the title
SELECT title, authors, publisher
FROM books
WHERE
    list_contains(categories, $subject)
    AND year BETWEEN $from_year AND $to_year
    AND contains(lower(title), lower($word))
ORDER BY title, authors, publisher
