-- one row per currency of counted goal events whose amounts are in no sum, of some variations
SELECT toString(foreign_currency)
FROM {{.Facts}}
WHERE {{template "goals_where.sql" .}}
    AND variation IN {variations:Array(String)}
    AND bitAnd(marks, 1) = 1
GROUP BY foreign_currency
HAVING sum(toInt64(sign)) != 0
{{template "settings.sql" .}}
