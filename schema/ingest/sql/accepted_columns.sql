-- One row is an accepted event, or a row derived from one. A WHERE clause follows.
SELECT
    ingested_at,
    website_id,
    subject,
    subject_id,
    experiment_id,
    variation_id,
    visitor_id,
    event_id,
    event,
    goal_id,
    value,
    time,
    derived,
    device,
    country
FROM events
