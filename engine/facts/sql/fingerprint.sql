-- one row: a number that differs if other events are stored among those that were accepted in a time
SELECT sum(cityHash64(website_id, visitor_id, event_id, ingested_at)) -- modulo 2^64
FROM {{.Sent}}
WHERE ingested_at > fromUnixTimestamp64Milli({after:Int64}, 'UTC')
    AND toUnixTimestamp64Milli(ingested_at) <= {through:Int64}
