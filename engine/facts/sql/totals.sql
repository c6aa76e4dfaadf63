WITH
    converted AS (  -- one row per visitor of some variations with goal events that count: total value
        SELECT sum(sign * value) AS total
        FROM {{.Facts}}
        WHERE {{template "goals_where.sql" .}}
            AND variation IN {variations:Array(String)}
        GROUP BY visitor_id
        HAVING sum(toInt64(sign)) != 0
    )
-- one row: these total values
SELECT groupArray(total)
FROM converted
{{template "settings.sql" .}}
