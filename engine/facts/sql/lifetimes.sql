WITH exposed AS (  -- the counted visitors who were first exposed in a range of times
    SELECT visitor_id, toString(variation) AS exposed_to, toUnixTimestamp64Milli(first_time) AS first_ms
    FROM {{.Facts}}
    WHERE section = {visitors:UInt64}
        AND variation != ''
        AND NOT endsWith(toString(variation), '!')
        AND first_ms >= {from_ms:Int64}
        AND first_ms < {to_ms:Int64}
    GROUP BY visitor_id, exposed_to, first_ms
    HAVING sum(toInt64(sign)) > 0
)
-- one row per order of these visitors in the range: its variation, its time, and its states in the order in which they
-- arrived; of each, the acceptance time, the revision, whether it belongs to no subject, the amounts, and their currency
SELECT
    exposed_to, ordered_ms,
    states.1, states.2, states.3, states.4, states.5, states.6, states.7, states.8
FROM (
    SELECT
        visitor_id,
        min(toUnixTimestamp64Milli(time))                   AS ordered_ms,
        arraySort(groupArray((toUnixTimestamp64Milli(ingested_at), revision, toUInt8(subject = 'none'), toUInt8(cancelled), value, profit, extra_value, JSONExtractString(details, 'currency')))) AS states
    FROM {{.Sent}}
    WHERE website_id = {website_id:Int64}
        AND event = 'goal'
        AND (empty({goals:Array(Int64)}) OR goal_id IN {goals:Array(Int64)})
        AND (subject = 'none' OR subject = {subject:String} AND subject_id = {subject_id:Int64} AND experiment_id = {experiment_id:Int64})
        AND toUnixTimestamp64Milli(ingested_at) <= {through_ms:Int64}
    GROUP BY visitor_id, event_id
    HAVING ordered_ms < {to_ms:Int64}
) AS orders
INNER JOIN exposed USING (visitor_id)
WHERE ordered_ms >= first_ms + {age_from_ms:Int64}
    AND ({age_to_ms:Int64} = 0 OR ordered_ms < first_ms + {age_to_ms:Int64})
