-- one row per place and bin: the counted goal events whose value is in the bin, which has the lower bound bucket
SELECT
    toUInt32({{.Place}})                                    AS place,
    toInt64(roundDown(value, {bins:Array(Int64)}))          AS bucket,
    sum(toInt64(sign))                                      AS goals_reached
FROM {{.Facts}}
WHERE {{template "goals_where.sql" .}}
GROUP BY place, bucket
{{template "settings.sql" .}}
