-- one row per visitor of some websites with goals that name a currency, or whose customers have such goals
SELECT DISTINCT website_id, visitor_id
FROM (
    SELECT website_id, visitor_id
    FROM {{.Sent}}
    WHERE website_id IN {websites:Array(Int64)}
        AND event = 'goal'
        AND JSONExtractString(details, 'currency') != ''
        AND toUnixTimestamp64Milli(ingested_at) <= {through:Int64}
    UNION ALL
    SELECT website_id, arrayJoin(visitors) AS visitor_id
    FROM (
        SELECT website_id, customer_id, groupUniqArrayIf(visitor_id, visitor_id != 0) AS visitors
        FROM customers
        WHERE website_id IN {websites:Array(Int64)}
            AND toUnixTimestamp64Milli(ingested_at) <= {through:Int64}
        GROUP BY website_id, customer_id
        HAVING max(JSONExtractString(details, 'currency') != '')
    )
)
