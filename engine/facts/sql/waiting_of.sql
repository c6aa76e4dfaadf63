-- one row: whether events that may change the facts of a subject were accepted after a time
SELECT toBool(count())
FROM
(
    SELECT 1
    FROM {{.Sent}}
    WHERE ingested_at > fromUnixTimestamp64Milli({after:Int64}, 'UTC') AND website_id = {website:Int64}
        AND (subject = {subject:String} AND subject_id = {id:Int64} AND experiment_id = {experiment:Int64}
            OR subject = 'none' AND visitor_id IN (SELECT visitor_id FROM {{.Facts}} WHERE section = {section:UInt64}))
    LIMIT 1
)
