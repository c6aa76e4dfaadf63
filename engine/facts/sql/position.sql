-- one row per position that is not cancelled: exactly one if the server has all parts
SELECT
    number,
    toUnixTimestamp64Milli(first_time)  AS through,
    visitor_id                          AS attempt,
    variation                           AS currencies,
    toBool(goal_id)                     AS rebuilding,
    sum(toInt64(sign))                  AS copies
FROM {{.Facts}}
WHERE section = bitShiftLeft(toUInt64(5), 60)
GROUP BY number, through, attempt, currencies, rebuilding
HAVING copies != 0
