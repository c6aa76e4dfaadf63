-- one row per visitor with counted goal events in a range of times
SELECT DISTINCT visitor_id
FROM {{.Facts}}
WHERE {{template "orders_where.sql"}}
