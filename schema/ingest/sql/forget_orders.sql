-- Deletes the rows of customers, and those that name some visitors.
ALTER TABLE customers DELETE
WHERE (website_id, customer_id) IN arrayZip({customer_websites:Array(Int64)}, {customer_ids:Array(UInt64)})
    OR (website_id, visitor_id) IN arrayZip({visitor_websites:Array(Int64)}, {visitor_ids:Array(UInt64)})
SETTINGS mutations_sync = 1
