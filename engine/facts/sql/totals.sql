-- one row: the total value of each visitor with goal events
SELECT groupArray(total)
FROM (
    SELECT sum(sign * value) AS total
    FROM {{.Facts}}
    WHERE {{.Where}}
    GROUP BY visitor_id
    HAVING sum(toInt64(sign)) != 0
)
{{.Settings}}
