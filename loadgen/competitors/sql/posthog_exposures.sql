-- PostHog's table of precomputed exposures: one job per day, with one row per visitor of the day. PostHog has one
-- column of breakdown values. Here each attribute has its own column, so the table can answer every question.
CREATE TABLE loadgen_posthog_exposures
ENGINE = ReplacingMergeTree
ORDER BY (job_id, entity_id)
AS SELECT
    toDate(time) AS job_id,
    toString(visitor_id) AS entity_id,
    if(uniqExact(variation_id) > 1, '$multiple', argMin(toString(variation_id), time)) AS variant,
    min(toDateTime64(time, 6, 'UTC')) AS first_exposure_time,
    max(toDateTime64(time, 6, 'UTC')) AS last_exposure_time{{range .Attributes}},
    argMin({{.}}, time) AS {{.}}{{end}}
FROM events
WHERE {{.Campaign}}
    AND event = 'view'
GROUP BY job_id, entity_id
