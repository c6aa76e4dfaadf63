-- one row per cell of all visitors, or cancelling one
SELECT
    variation,
    goal_id,
    toInt64(0)                                              AS bucket,
    sums
FROM {{.Facts}}
WHERE section = {cells:UInt64}
{{template "settings.sql" .}}
