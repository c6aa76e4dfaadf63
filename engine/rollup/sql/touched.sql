-- One row per event of the visitors with new events: all events of these visitors.
SELECT
    visitor_id,
    toUnixTimestamp64Milli(time)                     AS at,
    event_id,
    variation_id,
    toUInt8(event)                                   AS kind,
    goal_id,
    value,
    profit,
    extra_value,
    toUnixTimestamp64Milli(ingested_at)              AS accepted_at,
    {{.Order.Number}} AS number,
    toUInt8({{.Order.Since}}) AS fresh
{{- range .Columns}},
    {{.}}
{{- end}}
FROM {{.Order.Events}}
WHERE website_id = {website_id:Int64}
    AND subject = {subject:String}
    AND subject_id = {subject_id:Int64}
    AND experiment_id = {experiment_id:Int64}
    AND {{.Order.Until}}
{{- if .Known}}
    AND visitor_id IN {visitor_ids:Array(UInt64)}
{{- else}}
    AND visitor_id IN (
        SELECT visitor_id
        FROM {{.Order.Events}}
        WHERE website_id = {website_id:Int64}
            AND subject = {subject:String}
            AND subject_id = {subject_id:Int64}
            AND experiment_id = {experiment_id:Int64}
            AND {{.Order.Since}}
            AND {{.Order.Until}}
    )
{{- end}}
ORDER BY visitor_id
SETTINGS max_threads = {{.Threads}}
