-- one row per customer whose last order is older than a time and of whose visitors no event is left
SELECT website_id, customer_id
FROM customers
GROUP BY website_id, customer_id
HAVING max(time) < {before:DateTime64(3, 'UTC')}
    AND countIf(visitor_id != 0 AND (website_id, visitor_id) IN (SELECT website_id, visitor_id FROM events)) = 0
