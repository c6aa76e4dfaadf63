-- position
-- one row per position that is not cancelled: exactly one per generation if the server has all parts
SELECT
    digest                              AS generation,
    seen                                AS format,
    number,
    toUnixTimestamp64Milli(first_time)  AS through,
    visitor_id                          AS attempt,
    variation                           AS currencies,
    value                               AS rates,
    profit                              AS rates_through,
    toBool(goal_id)                     AS rebuilding,
    since_ms                            AS until,
    later_ms                            AS after,
    sum(toInt64(sign))                  AS copies
FROM {{.Facts}}
WHERE {{.Where}}
    AND section IN (bitShiftLeft(toUInt64(10), 59), bitShiftLeft(toUInt64(11), 59))
GROUP BY generation, format, number, through, attempt, currencies, rates, rates_through, rebuilding, until, after
HAVING copies != 0
