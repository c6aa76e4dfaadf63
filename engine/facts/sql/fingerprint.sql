-- one row: a number that differs if other events are stored among those of touched.sql
SELECT sum(cityHash64(website_id, visitor_id, event_id, ingested_at)) -- modulo 2^64
FROM {{.Sent}}
WHERE ingested_at > fromUnixTimestamp64Milli({after:Int64}, 'UTC')
