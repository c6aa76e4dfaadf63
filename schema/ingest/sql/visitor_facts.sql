-- one row per visitor of a website with facts
SELECT DISTINCT website_id, visitor_id
FROM facts
WHERE grain IN ('visitor', 'goal')
    AND visitor_id IN {visitor_ids:Array(UInt64)}
    AND (website_id IN {website_ids:Array(Int64)} OR empty({website_ids:Array(Int64)}))
