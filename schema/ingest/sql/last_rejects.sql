-- One row per line that was rejected since, the last ones first; those whose website is unknown are everyone's.
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
LIMIT {most:UInt32}
