-- One row per order of a customer that names no visitor, and per time at which a customer had bought, as they arrived.
SELECT website_id, goal_id, event_id, revision, time, cancelled, value, profit, extra_value, details
FROM customers
WHERE visitor_id = 0
ORDER BY version DESC, website_id, customer_id, goal_id, event_id
