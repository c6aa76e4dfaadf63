-- One row per copy whose removal was recorded as begun and not as done.
SELECT
    website_id, toString(subject) AS of, subject_id, experiment_id, visitor_id, event_id, writer, ingested_at,
    toString(event) AS kind, goal_id, value, extra_value
FROM removed_copies
WHERE ingested_at >= {since:DateTime64(3, 'UTC')}
GROUP BY website_id, subject, subject_id, experiment_id, visitor_id, event_id, writer, ingested_at, event, goal_id, value, extra_value
HAVING NOT max(done)
