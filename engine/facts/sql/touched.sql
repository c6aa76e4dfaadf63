-- one row per visitor with events that were accepted after a time: the last acceptance time, in milliseconds since 1970
SELECT website_id, visitor_id, toUnixTimestamp64Milli(max(ingested_at))
FROM {{.Sent}}
WHERE ingested_at > fromUnixTimestamp64Milli({after:Int64}, 'UTC')
GROUP BY website_id, visitor_id
ORDER BY website_id, visitor_id
