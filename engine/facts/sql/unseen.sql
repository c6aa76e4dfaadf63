WITH
    seen AS (  -- the visitors with a view of any subject of the website
        SELECT visitor_id
        FROM {{.Facts}}
        WHERE section IN {sections:Array(UInt64)}
            AND variation != ''
        GROUP BY visitor_id
        HAVING sum(toInt64(sign)) > 0
    )
-- one row: goal events without exposures since a time, and those of them whose visitor has no view
SELECT
    toInt64(sum(sign))                                      AS goals,
    toInt64(sumIf(sign, visitor_id NOT IN seen))            AS without_view
FROM {{.Facts}}
WHERE section = {goals:UInt64}
    AND ({goal_id:Int64} = 0 OR goal_id = {goal_id:Int64})
    AND toUnixTimestamp64Milli(first_time) + toInt64(since_ms) >= {from_ms:Int64}
