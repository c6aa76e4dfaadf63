-- one row: the number of stored events, copies included, that were accepted after a time and may change the facts of a
-- subject: its own, goals without exposures of visitors who saw it, and orders of customers that name no visitor
SELECT toInt64(count())
FROM (
    SELECT website_id
    FROM {{.Sent}}
    WHERE ingested_at > fromUnixTimestamp64Milli({after:Int64}, 'UTC') AND website_id = {website:Int64}
        AND (subject = {subject:String} AND subject_id = {id:Int64} AND experiment_id = {experiment:Int64}
            OR subject = 'none' AND visitor_id IN (SELECT visitor_id FROM {{.Facts}} WHERE section = {section:UInt64}))
    UNION ALL
    SELECT website_id
    FROM customers
    WHERE visitor_id = 0 AND ingested_at > fromUnixTimestamp64Milli({after:Int64}, 'UTC') AND website_id = {website:Int64}
)
