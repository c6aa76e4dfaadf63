-- one row per own attribute, per value of one, and per property in events, in the order in which they were first sent
SELECT website_id, toString(kind), key, argMin(source, first_at), min(first_at) AS first
FROM names
WHERE kind IN ('attribute', 'property', 'number')
GROUP BY website_id, kind, key
ORDER BY website_id, first, kind, key
