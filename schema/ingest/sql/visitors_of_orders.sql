-- one row per visitor of some, by website, that an order of a customer names
SELECT DISTINCT website_id, visitor_id
FROM customers
WHERE visitor_id IN {visitor_ids:Array(UInt64)}
    AND (website_id IN {website_ids:Array(Int64)} OR empty({website_ids:Array(Int64)}))
