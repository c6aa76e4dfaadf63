-- one row per visitor with events, in order: the first ones of those with a condition
SELECT website_id, visitor_id
FROM {{.Sent}}
WHERE {{.Where}}
GROUP BY website_id, visitor_id
ORDER BY website_id, visitor_id
LIMIT {most:UInt32}
SETTINGS optimize_aggregation_in_order = 1
