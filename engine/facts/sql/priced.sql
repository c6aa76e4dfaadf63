-- one row per visitor of some websites with goals that name a currency
SELECT DISTINCT website_id, visitor_id
FROM {{.Sent}}
WHERE website_id IN {websites:Array(Int64)}
    AND event = 'goal'
    AND details != ''
    AND toUnixTimestamp64Milli(ingested_at) <= {through:Int64}
ORDER BY website_id, visitor_id
