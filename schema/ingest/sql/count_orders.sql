-- One row: the number of stored orders of some customers, and of times at which they had bought.
SELECT uniqExact(website_id, customer_id, goal_id, event_id, if(goal_id = 0, revision, 0))
FROM customers
WHERE (website_id, customer_id) IN arrayZip({customer_websites:Array(Int64)}, {customer_ids:Array(UInt64)})
