-- one row per visitor of some websites with a goal in some currencies, or of some websites in any, and a goal on some
-- days: the order of the one may have the time of the other. Rows of customers count for all visitors of the customer.
SELECT website_id, visitor_id
FROM (
    SELECT
        website_id, visitor_id, intDiv(toUnixTimestamp64Milli(time), 86400000) AS day,
        JSONExtractString(details, 'currency')              AS code,
        code IN {currencies:Array(String)} OR code != '' AND website_id IN {own:Array(Int64)} AS is_priced,
        arrayExists((first, last) -> day BETWEEN first AND last, {first_days:Array(Int64)}, {last_days:Array(Int64)}) AS is_dated
    FROM {{.Sent}}
    WHERE website_id IN {websites:Array(Int64)}
        AND event = 'goal'
        AND toUnixTimestamp64Milli(ingested_at) <= {through:Int64}
        AND (is_priced OR is_dated)
    UNION ALL
    SELECT website_id, arrayJoin(visitors) AS visitor_id, 0 AS day, '' AS code, is_priced, is_dated
    FROM (
        SELECT
            website_id, customer_id,
            groupUniqArrayIf(visitor_id, visitor_id != 0)   AS visitors,
            max(JSONExtractString(details, 'currency') IN {currencies:Array(String)}
                OR JSONExtractString(details, 'currency') != '' AND website_id IN {own:Array(Int64)}) AS is_priced,
            max(arrayExists((first, last) -> intDiv(toUnixTimestamp64Milli(time), 86400000) BETWEEN first AND last,
                {first_days:Array(Int64)}, {last_days:Array(Int64)})) AS is_dated
        FROM customers
        WHERE website_id IN {websites:Array(Int64)}
            AND goal_id != 0
            AND toUnixTimestamp64Milli(ingested_at) <= {through:Int64}
        GROUP BY website_id, customer_id
        HAVING is_priced OR is_dated
    )
)
GROUP BY website_id, visitor_id
HAVING max(is_priced) AND max(is_dated)
