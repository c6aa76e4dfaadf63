-- one row per currency of goal events that is not that of the website: those whose amounts are in no sum, and the time of
-- the newest one, in milliseconds since 1970
SELECT
    toString(foreign_currency),
    toInt64(sumIf(sign, bitAnd(marks, 1) = 1)),
    max(toUnixTimestamp64Milli(first_time) + toInt64(since_ms))
FROM {{.Facts}}
WHERE {{.Where}}
    AND foreign_currency != ''
GROUP BY foreign_currency
HAVING sum(toInt64(sign)) != 0
{{.Settings}}
