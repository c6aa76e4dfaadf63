-- One pass over the events in DuckDB. One row is a variation and a value of the dimension.
WITH
    per_visitor AS (  -- one row is a visitor
        SELECT
            if(count(DISTINCT variation_id) FILTER (event = 'view' AND {{.Filter}}) > 1, 'multiple',
                CAST(arg_min(variation_id, time) FILTER (event = 'view' AND {{.Filter}}) AS VARCHAR)) AS variation,
            min(time) FILTER (event = 'view' AND {{.Filter}}) AS first_exposure,
            arg_min({{.Dimension}}, time) FILTER (event = 'view' AND {{.Filter}}) AS dimension,
            list({time: time{{range .Metrics}}, {{.Name}}: {{.Value}}{{end}}}) FILTER (event = 'goal' AND {{.Goal}}) AS goals
        FROM events
        WHERE {{.Window "time"}}
        GROUP BY visitor_id
        HAVING first_exposure IS NOT NULL
    ),
    counted AS (  -- one row is a visitor
        SELECT
            variation,
            dimension,
            list_filter(goals, lambda goal: goal.time >= first_exposure) AS goals
        FROM per_visitor
    ),
{{- if .Limits}}
    limits AS (  -- one row: mean and standard deviation of the values of goal events
        SELECT
            avg(goal.m1) AS mean,
            stddev_samp(goal.m1) AS deviation
        FROM (SELECT unnest(goals) AS goal FROM counted WHERE variation != 'multiple')
    ),
{{- end}}
    totals AS (  -- one row is a visitor
        SELECT
            variation,
            dimension{{range .Metrics}},
            coalesce(list_{{.Aggregate}}(list_transform({{if $.Limits}}list_filter(goals, lambda goal: abs(goal.{{.Name}} - mean) <= {{$.ZScore}} * deviation){{else}}goals{{end}}, lambda goal: goal.{{.Name}})), 0) AS {{.Name}}{{end}}
        FROM counted{{if .Limits}}
        CROSS JOIN limits{{end}}
    )
SELECT
    variation,
    dimension,
    count(*) AS visitors,
    [{{range $i, $m := .Metrics}}{{if $i}}, {{end}}sum({{.Name}}){{end}}] AS totals,
    [{{range $i, $m := .Metrics}}{{if $i}}, {{end}}sum({{.Name}} * {{.Name}}){{end}}] AS squares
FROM totals
GROUP BY variation, dimension
ORDER BY variation, dimension
