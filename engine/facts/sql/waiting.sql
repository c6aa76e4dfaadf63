-- one row: the number of stored events, copies included, that were accepted after a time, and of such orders of customers
-- that name no visitor
SELECT toInt64(count())
FROM (
    SELECT website_id
    FROM {{.Sent}}
    WHERE ingested_at > fromUnixTimestamp64Milli({after:Int64}, 'UTC')
    UNION ALL
    SELECT website_id
    FROM customers
    WHERE visitor_id = 0 AND ingested_at > fromUnixTimestamp64Milli({after:Int64}, 'UTC')
)
