-- one row per visitor with a view: the first view and some of its attributes
SELECT
    visitor_id,
    toUnixTimestamp64Milli(time)           AS at,
    variation_id,
    event_id
{{- range .Columns}},
    toString({{.}})
{{- end}}
FROM events
WHERE website_id = {website_id:Int64}
    AND subject = {subject:String}
    AND subject_id = {subject_id:Int64}
    AND experiment_id = {experiment_id:Int64}
    AND event = 'view'
ORDER BY visitor_id, time, variation_id, event_id
LIMIT 1 BY visitor_id
