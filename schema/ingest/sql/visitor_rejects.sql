-- One row per line rejected in the last week that contains the id of a visitor, in the order of arrival. The id may be a part
-- of another word.
SELECT
    rejected_at,
    website_id,
    way,
    file,
    line,
    reason,
    text
FROM rejects
WHERE arrayExists(spelling -> position(text, spelling) > 0, {spellings:Array(String)})
    AND ({website_id:Int64} = 0 OR website_id IN (0, {website_id:Int64}))
ORDER BY rejected_at, line
LIMIT {limit:UInt32}
