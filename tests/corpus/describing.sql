DESCRIBE sales;
DESCRIBE SELECT id, price FROM sales;
SUMMARIZE items;
SUMMARIZE SELECT item, weight FROM items;
SELECT column_name, max FROM (SUMMARIZE items);
SELECT column_name FROM (DESCRIBE sales);
SELECT count(*) FROM (DESCRIBE sales);
