-- One row per line rejected since a time, the latest first. Lines of an unknown website are always included.
SELECT
    rejected_at,
    website_id,
    way,
    file,
    line,
    reason,
    text
FROM rejects
WHERE rejected_at >= {since:DateTime64(3, 'UTC')}
    AND ({website_id:Int64} = 0 OR website_id IN (0, {website_id:Int64}))
ORDER BY rejected_at DESC, line DESC, reason
LIMIT {limit:UInt32}
