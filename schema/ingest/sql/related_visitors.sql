-- one row per visitor that the customers of some visitors name besides
SELECT DISTINCT website_id, visitor_id
FROM customers
WHERE visitor_id != 0
    AND (website_id, visitor_id) NOT IN arrayZip({visitor_websites:Array(Int64)}, {visitor_ids:Array(UInt64)})
    AND (website_id, customer_id) IN (
        SELECT website_id, customer_id
        FROM customers
        WHERE (website_id, visitor_id) IN arrayZip({visitor_websites:Array(Int64)}, {visitor_ids:Array(UInt64)})
    )
