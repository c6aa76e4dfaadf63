-- Keeps subject_stats up to date with every insert into events.
CREATE MATERIALIZED VIEW IF NOT EXISTS subject_stats_view TO subject_stats AS
SELECT
    website_id,
    subject,
    subject_id,
    experiment_id,
    event,
    goal_id,
    count()                       AS rows,
    sum(toInt128(value))          AS value,
    sum(toInt128(extra_value))    AS extra_value,
    max(ingested_at)              AS last_ingested,
    max(time)                     AS newest_event
FROM events
GROUP BY website_id, subject, subject_id, experiment_id, event, goal_id
