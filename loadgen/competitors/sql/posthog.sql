-- PostHog's computation of a mean metric, reimplemented; a proportion takes the maximum of the constant 1. One row is a
-- variation and a value of the dimension.
{{with index .Metrics 0 -}}
WITH
    exposures AS (  -- one row is a visitor
        SELECT
            visitor_id,
            if(uniqExact(variation_id) > 1, '$multiple', argMin(toString(variation_id), time)) AS variation,
            min(time) AS first_exposure,
            argMin({{$.Dimension}}, time) AS dimension
        FROM {{$.Events}}
        WHERE {{$.Campaign}}
            AND event = 'view'
            AND {{$.Filter}}
            AND {{$.Window "time"}}
        GROUP BY visitor_id
    ),
    metric_events AS (  -- one row is a goal event
        SELECT
            visitor_id,
            time,
            {{.Value}} AS value
        FROM {{$.Events}}
        WHERE {{$.Campaign}}
            AND event = 'goal'
            AND {{if .Condition}}{{.Condition}}{{else}}{{$.Goal}}{{end}}
            AND {{$.Window "time"}}
    ),
{{template "posthog_totals.sql" $}}
{{- end}}
