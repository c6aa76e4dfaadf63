-- one row: a number that differs if other events, or orders of customers, are stored among those that were accepted in a
-- time
SELECT sum(hash) -- modulo 2^64
FROM (
    SELECT cityHash64(website_id, visitor_id, event_id, ingested_at) AS hash
    FROM {{.Sent}}
    WHERE ingested_at > fromUnixTimestamp64Milli({after:Int64}, 'UTC')
        AND toUnixTimestamp64Milli(ingested_at) <= {through:Int64}
    UNION ALL
    SELECT cityHash64(website_id, customer_id, visitor_id, event_id, revision, ingested_at) AS hash
    FROM customers
    WHERE ingested_at > fromUnixTimestamp64Milli({after:Int64}, 'UTC')
        AND toUnixTimestamp64Milli(ingested_at) <= {through:Int64}
)
