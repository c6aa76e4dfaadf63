-- one row per currency of goal events whose amounts are in no sum
SELECT toString(foreign_currency)
FROM {{.Facts}}
WHERE {{.Where}}
    AND bitAnd(marks, 1) = 1
GROUP BY foreign_currency
HAVING sum(toInt64(sign)) != 0
{{.Settings}}
