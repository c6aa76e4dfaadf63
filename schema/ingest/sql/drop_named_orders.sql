-- Deletes the orders of customers of some goals.
ALTER TABLE customers DELETE
WHERE (website_id, goal_id) IN arrayZip({goal_websites:Array(Int64)}, {goal_ids:Array(Int64)})
SETTINGS mutations_sync = 1
