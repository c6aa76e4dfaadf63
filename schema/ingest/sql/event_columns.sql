-- One row is a stored event. A WHERE clause follows.
SELECT
    website_id, subject, subject_id, experiment_id, visitor_id, event_id, time, variation_id, event,
    goal_id, value, profit, extra_value, attributes, details, revision, cancelled
FROM events
