-- What sqlite3 did while data/sqlite-orders.parquet was recorded: fill a table of two rows a page in memory, index it,
-- look customers up in scattered order reading whole rows, update scattered rows, and scan once for a report.
CREATE TABLE orders(id INTEGER PRIMARY KEY, customer INT, day INT, amount INT, note TEXT);
INSERT INTO orders
  WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000),
  text(t) AS MATERIALIZED (SELECT replace(hex(zeroblob(950)), '0', 'x'))
  SELECT i, i * 7919 % 2003, i * 104729 % 365, i * 15485863 % 10007, i || t FROM text, n;
CREATE INDEX by_customer ON orders(customer);
WITH RECURSIVE q(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM q WHERE i < 2000)
  SELECT count(*), max(note) > '9' FROM q CROSS JOIN orders ON customer = i * 3571 % 2003;
WITH RECURSIVE q(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM q WHERE i < 2000)
  UPDATE orders SET amount = amount + 1 WHERE id IN (SELECT i * 6700417 % 6000 + 1 FROM q);
SELECT day, count(*), sum(amount) FROM orders GROUP BY day ORDER BY 3 DESC, 1 LIMIT 3;
