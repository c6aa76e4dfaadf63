-- PostHog's table of precomputed metric events. One row is a goal event of a metric; a job has one metric.
CREATE TABLE loadgen_posthog_metric_events
ENGINE = ReplacingMergeTree
ORDER BY (job_id, entity_id, timestamp, event_uuid)
AS SELECT
    metric.1 AS job_id,
    toString(visitor_id) AS entity_id,
    toDateTime64(time, 6, 'UTC') AS timestamp,
    event_id AS event_uuid,
    metric.2 AS numeric_value
FROM events
ARRAY JOIN arrayFilter(m -> m.1 != '', [
    (if(goal_id = {{.Param "goal_1" "Int64"}}, 'goals', ''), toFloat64(1)),
    (if(goal_id = {{.Param "goal_1" "Int64"}}, 'value', ''), toFloat64(value)),
    (if(goal_id = {{.Param "goal_1" "Int64"}}, 'profit', ''), toFloat64(profit)),
    (if(goal_id = {{.Param "goal_1" "Int64"}}, 'extra_value', ''), toFloat64(extra_value)),
    (if(goal_id = {{.Param "goal_1" "Int64"}} AND value >= {{.Param "goal_value" "Int64"}}, 'value_from', ''), toFloat64(value)){{range .Goals}},
    (if(goal_id = {{$.Param . "Int64"}}, '{{.}}', ''), toFloat64(1)){{end}}]) AS metric
WHERE {{.Campaign}}
    AND event = 'goal'
