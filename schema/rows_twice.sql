-- Rows that an event has too many: an event of a visitor has one row for each subject and experiment.
SELECT toUInt64(sum(rows - events)) AS too_many
FROM
(
    -- a visitor of a subject
    SELECT count() AS rows, uniqExact(event_id) AS events
    FROM events
    GROUP BY website_id, subject, subject_id, experiment_id, visitor_id
)
