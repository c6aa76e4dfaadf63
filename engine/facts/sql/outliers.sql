-- one row: number, sum and sum of squares of the values of all counted goal events of some variations
SELECT
    sum(toInt64(sign)),
    sum(toInt128(sign) * value),
    sum(toInt128(sign) * value * value)
FROM {{.Facts}}
WHERE {{template "goals_where.sql" .}}
    AND variation IN {variations:Array(String)}
{{template "settings.sql" .}}
