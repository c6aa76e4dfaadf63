-- one row per event that the report needs, for subjects with few events
SELECT
    visitor_id,
    toUnixTimestamp64Milli(time)                               AS at,
    variation_id,
    if(event = 'view' OR {{.Counts}}, toUInt8(event), 0)       AS kind,
    value,
    profit,
    extra_value
{{- if .ByGoal}},
    goal_id
{{- end}}
{{- if .Shows}},
    event_id,
    toBool({{.Filters}})                                       AS shows,
    {{.Dimension}}                                             AS dimension
{{- end}}
FROM events
WHERE website_id = {website_id:Int64}
    AND subject = {subject:String}
    AND subject_id = {subject_id:Int64}
    AND experiment_id = {experiment_id:Int64}
{{- if .SomeVisitors}}
    AND visitor_id IN {visitor_ids:Array(UInt64)}
{{- end}}
{{- if not .AllEvents}}
    AND (event = 'view' OR {{.Counts}})
{{- end}}
{{- if .SomeVisitors}}
LIMIT {limit:UInt64}
{{- end}}
