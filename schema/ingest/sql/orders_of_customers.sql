-- The rows of some customers, in the order of their arrival.
SELECT
    ingested_at, version, website_id, goal_id, event_id, visitor_id, revision, time, cancelled, value, profit, extra_value,
    details
FROM customers
WHERE (website_id, customer_id) IN arrayZip({customer_websites:Array(Int64)}, {customer_ids:Array(UInt64)})
ORDER BY version DESC, website_id, customer_id, goal_id, event_id, visitor_id, revision
LIMIT {limit:UInt32}
