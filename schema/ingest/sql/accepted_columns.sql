-- One row is an accepted event. A WHERE clause follows.
SELECT
    ingested_at, version, website_id, subject, subject_id, experiment_id, variation_id, visitor_id,
    event_id, event, goal_id, value, profit, extra_value, details, time, device, country, revision, cancelled
FROM events
