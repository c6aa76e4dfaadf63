-- one row: the orders whose amounts changed rates convert, their visitors, and the subjects that count them. A rate of a
-- currency converts the orders in it, and those in other currencies of websites whose currency it is.
WITH groupUniqArrayIf((website_id, toString(subject), subject_id, experiment_id), subject != 'none') AS subjects
SELECT
    toInt64(uniqExact(website_id, visitor_id, goal_id, order_ms)) AS orders,
    toInt64(uniqExact(website_id, visitor_id))              AS visitors,
    subjects.1, subjects.2, subjects.3, subjects.4
FROM (
    SELECT
        website_id, visitor_id, subject, subject_id, experiment_id, goal_id,
        toUnixTimestamp64Milli(first_time) + toInt64(since_ms) AS order_ms,
        toString(foreign_currency)                          AS code,
        sum(toInt64(sign))                                  AS copies
    FROM {{.Facts}}
    WHERE {{.InGeneration}}
        AND section BETWEEN {first_section:UInt64} AND {last_section:UInt64}
        AND foreign_currency != ''
        AND website_id IN {websites:Array(Int64)}
        AND NOT endsWith(toString(variation), '!')
        AND arrayExists(
            (of, first, last) -> of IN (code, {own:Array(String)}[indexOf({websites:Array(Int64)}, website_id)])
                AND intDiv(order_ms, 86400000) BETWEEN first AND last,
            {currencies:Array(String)}, {first_days:Array(Int64)}, {last_days:Array(Int64)})
    GROUP BY website_id, visitor_id, subject, subject_id, experiment_id, goal_id, order_ms, code
    HAVING copies > 0
)
