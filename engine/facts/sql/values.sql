WITH
    counted AS (  -- one row per value: visitors
        SELECT
            toString({{.Dimension}})                        AS value,
            sum(toInt64(sign))                              AS visitors
        FROM {{.Facts}}
        WHERE section = {visitors:UInt64}
            AND variation NOT IN ('', '-')
        GROUP BY value
        HAVING visitors > 0
    )
-- one row per value, by visitors in descending order: its visitors, the visitors of all values, and the number of values
SELECT
    value,
    visitors,
    sum(visitors) OVER ()                                   AS visitors_in_all,
    toInt64(count() OVER ())                                AS values_in_all
FROM counted
ORDER BY visitors DESC, value
LIMIT {most:UInt32}
{{template "settings.sql" .}}
