-- one row per subject, event and goal: totals of all stored events
SELECT
    website_id,
    subject,
    subject_id,
    experiment_id,
    event,
    goal_id,
    sum(rows)          AS events,
    sum(value)         AS value,
    sum(extra_value)   AS extra_value,
    max(last_ingested) AS last_ingested,
    max(newest_event)  AS newest_event
FROM {counters:Identifier}
{{- if .Some}}
WHERE website_id IN {websites:Array(Int64)}
    AND subject_id IN {ids:Array(Int64)}
{{- end}}
GROUP BY website_id, subject, subject_id, experiment_id, event, goal_id
ORDER BY website_id, subject, subject_id, experiment_id, event, goal_id
-- In clusters of earlier releases, subject_stats has a sharding key, but its rows are on the shards of the events.
SETTINGS optimize_skip_unused_shards = 0, optimize_distributed_group_by_sharding_key = 0
