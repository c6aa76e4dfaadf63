-- PostHog's computation of a metric from precomputed exposures and metric events, reimplemented. One row is a variation
-- and a value of the dimension. The exposures are one row per visitor and day; events that were computed twice are removed.
{{with index .Metrics 0 -}}
WITH
    exposures AS (  -- one row is a visitor
        SELECT
            entity_id AS visitor_id,
            if(uniqExact(variant) > 1, '$multiple', argMin(variant, first_exposure_time)) AS variation,
            min(first_exposure_time) AS first_exposure,
            argMin({{$.Dimension}}, first_exposure_time) AS dimension
        FROM loadgen_posthog_exposures
        WHERE {{$.Filter}}
            AND {{$.Window "first_exposure_time"}}
        GROUP BY entity_id
    ),
    metric_events AS (  -- one row is a goal event
        SELECT
            entity_id AS visitor_id,
            timestamp AS time,
            any(numeric_value) AS value
        FROM loadgen_posthog_metric_events
        WHERE job_id = '{{.Column}}'
            AND {{$.Window "timestamp"}}
        GROUP BY entity_id, timestamp, event_uuid
    ),
{{template "posthog_totals.sql" $}}
{{- end}}
