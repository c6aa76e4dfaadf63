-- The lines rejected since a time, the latest first. Lines of an unknown website are always included.
WHERE rejected_at >= {since:DateTime64(3, 'UTC')}
    AND ({website_id:Int64} = 0 OR website_id IN (0, {website_id:Int64}))
ORDER BY rejected_at DESC, line DESC, reason
LIMIT {limit:UInt32}
