-- one row per stored row of the cells of all visitors, including rows that cancel others
SELECT
    variation,
    goal_id,
    toInt64(0)                                              AS bucket,
    sums
FROM {{.Facts}}
WHERE section = {cells:UInt64}
{{template "settings.sql" .}}
