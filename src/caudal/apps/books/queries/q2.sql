-- Authors who published in at least ten different decades
SELECT author
FROM (SELECT unnest(authors) AS author, year // 10 AS decade FROM books)
GROUP BY author
HAVING count(DISTINCT decade) >= $min_decades
ORDER BY author
