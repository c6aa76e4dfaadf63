-- The lines of the last week that contain the id of a visitor, in the order of arrival. The id may be part of a longer
-- word.
WHERE arrayExists(spelling -> position(text, spelling) > 0, {spellings:Array(String)})
    AND (empty({website_ids:Array(Int64)}) OR website_id = 0 OR website_id IN {website_ids:Array(Int64)})
ORDER BY rejected_at, line
LIMIT {limit:UInt32}
