-- the counted goal events in a range of times; those that a refresh has replaced have the sign -1 besides
SELECT visitor_id, variation, toInt64(sign), sign * value, sign * profit, toString(foreign_currency)
FROM {{.Facts}}
WHERE section = {section:UInt64}
    AND ({goal_id:Int64} = 0 OR goal_id = {goal_id:Int64})
    AND variation != ''
    AND toUnixTimestamp64Milli(first_time) + toInt64(since_ms) >= {from_ms:Int64}
    AND toUnixTimestamp64Milli(first_time) + toInt64(since_ms) < {to_ms:Int64}
    AND since_ms >= {age_from_ms:UInt64}
    AND since_ms < {age_to_ms:UInt64}
    AND toUnixTimestamp64Milli(first_time) <= {mature_ms:Int64}
