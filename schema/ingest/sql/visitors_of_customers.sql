-- one row per visitor that an order of some customers names
SELECT DISTINCT website_id, visitor_id
FROM customers
WHERE visitor_id != 0
    AND (website_id, customer_id) IN arrayZip({customer_websites:Array(Int64)}, {customer_ids:Array(UInt64)})
UNION DISTINCT
SELECT DISTINCT website_id, visitor_id
FROM events
WHERE details != ''
    AND (website_id, JSONExtractString(details, 'customer')) IN arrayZip({customer_websites:Array(Int64)}, {customer_names:Array(String)})
