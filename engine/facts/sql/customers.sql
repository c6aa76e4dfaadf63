-- one row per stored row of some customers that was accepted up to a time, copies included: all of them, or those of the
-- goals with orders that name no visitor, unless the customer has too many orders, visitors or rows. Of the times at which
-- a customer had bought before, the least one is a row of goal 0.
WITH of AS (
    SELECT *, version
    FROM customers
    WHERE website_id IN {websites:Array(Int64)}
        AND customer_id IN {customers:Array(UInt64)}
        AND toUnixTimestamp64Milli(ingested_at) <= {through:Int64}
)
SELECT
    website_id, customer_id, goal_id, event_id, visitor_id, revision, cancelled, toUnixTimestamp64Milli(time) AS at,
    value, profit, extra_value, toUnixTimestamp64Milli(ingested_at) AS accepted_ms, version, details
FROM of
WHERE goal_id != 0
    AND (website_id, customer_id, goal_id) IN (
        SELECT website_id, customer_id, goal_id
        FROM of
        WHERE goal_id != 0
        GROUP BY website_id, customer_id, goal_id
        HAVING {all:Bool}
            OR countIf(visitor_id = 0) > 0
            AND uniqExact(event_id) <= {orders:Int64}
            AND uniqExactIf(visitor_id, visitor_id != 0) <= {buyers:Int64}
            AND uniqExact(event_id, visitor_id, revision) <= {rows:Int64}
    )
LIMIT {most:UInt64}
UNION ALL
SELECT
    website_id, customer_id, 0, 0, 0, 0, false, min(toUnixTimestamp64Milli(time)) AS at, 0, 0, 0,
    argMin(toUnixTimestamp64Milli(ingested_at), time), 0, ''
FROM of
WHERE goal_id = 0
GROUP BY website_id, customer_id
