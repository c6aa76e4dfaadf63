-- one row per visitor with events that were accepted after a time, and per visitor of a customer with such orders, who may
-- get or lose some of them: the last acceptance time, in milliseconds since 1970. A row that is not of a visitor has the
-- last time of the orders. Orders of a customer who had too many visitors or orders before change nothing.
SELECT website_id, visitor_id, toUnixTimestamp64Milli(max(accepted)), max(of_visitor)
FROM (
    SELECT website_id, visitor_id, ingested_at AS accepted, true AS of_visitor
    FROM {{.Sent}}
    WHERE ingested_at > fromUnixTimestamp64Milli({after:Int64}, 'UTC')
    UNION ALL
    SELECT website_id, 0 AS visitor_id, max(ingested_at) AS accepted, false AS of_visitor
    FROM customers
    WHERE ingested_at > fromUnixTimestamp64Milli({after:Int64}, 'UTC')
    GROUP BY website_id
    UNION ALL
    SELECT website_id, arrayJoin(visitors) AS visitor_id, fromUnixTimestamp64Milli(0, 'UTC') AS accepted, true AS of_visitor
    FROM (
        SELECT
            website_id, customer_id, goal_id,
            uniqExactIf(visitor_id, visitor_id != 0 AND ingested_at <= fromUnixTimestamp64Milli({after:Int64}, 'UTC')) AS buyers,
            uniqExactIf(event_id, ingested_at <= fromUnixTimestamp64Milli({after:Int64}, 'UTC')) AS orders,
            groupUniqArrayIf(visitor_id, visitor_id != 0)   AS visitors
        FROM customers
        WHERE (website_id, customer_id) IN (
                SELECT website_id, customer_id
                FROM customers
                WHERE ingested_at > fromUnixTimestamp64Milli({after:Int64}, 'UTC')
            )
            AND goal_id != 0
        GROUP BY website_id, customer_id, goal_id
        HAVING buyers <= {buyers:Int64} AND orders <= {orders:Int64}
    )
)
GROUP BY website_id, visitor_id
ORDER BY website_id, visitor_id
