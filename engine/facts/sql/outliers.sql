-- one row: number, sum and sum of squares of the values of goal events
SELECT
    sum(toInt64(sign)),
    sum(toInt128(sign) * value),
    sum(toInt128(sign) * value * value)
FROM {{.Facts}}
WHERE {{.Where}}
{{.Settings}}
