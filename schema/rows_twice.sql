-- One row: the number of duplicate rows. An event must have one row per subject and experiment.
SELECT toUInt64(sum(rows - events)) AS too_many
FROM
(
    -- one row per visitor and subject
    SELECT count() AS rows, uniqExact(event_id) AS events
    FROM events
    GROUP BY website_id, subject, subject_id, experiment_id, visitor_id
)
