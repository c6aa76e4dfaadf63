-- one row per visitor with events that were accepted after a time
SELECT DISTINCT website_id, visitor_id
FROM {{.Sent}}
WHERE ingested_at > fromUnixTimestamp64Milli({after:Int64}, 'UTC')
    AND ingested_at <= fromUnixTimestamp64Milli({through:Int64}, 'UTC')
ORDER BY website_id, visitor_id
