-- one row per goal of a website and full hour: the orders of a period that arrived within a day of their time, and how
-- many of their later revisions arrived at this age; age 0 has the orders
SELECT goal_id, hours, toInt64(count())
FROM (
    SELECT
        any(goal)                                           AS goal_id,
        min(ordered)                                        AS ordered_ms,
        arraySort(groupArray(came))                         AS all_came,
        arrayJoin(arrayMap((ms, at) -> if(at = 1, 0, toUInt32(greatest(intDiv(ms - ordered_ms + 3599999, 3600000), 1))), all_came, arrayEnumerate(all_came))) AS hours
    FROM (
        -- one row per revision
        SELECT
            visitor_id, event_id, revision,
            any(goal_id)                                    AS goal,
            min(toUnixTimestamp64Milli(time))               AS ordered,
            min(toUnixTimestamp64Milli(ingested_at))        AS came
        FROM {{.Sent}}
        WHERE website_id = {website_id:Int64}
            AND event = 'goal'
            AND time >= fromUnixTimestamp64Milli({from_ms:Int64})
            AND toUnixTimestamp64Milli(ingested_at) <= {through_ms:Int64}
        GROUP BY visitor_id, event_id, revision
    )
    GROUP BY visitor_id, event_id
    HAVING all_came[1] - ordered_ms <= 86400000
)
GROUP BY goal_id, hours
