-- The last rejected lines, the latest first. Lines of an unknown website are always included.
WHERE {website_id:Int64} = 0 OR website_id IN (0, {website_id:Int64})
ORDER BY rejected_at DESC, line DESC, reason
LIMIT {limit:UInt32}
