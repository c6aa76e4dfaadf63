-- One row: how many of the sought copies are still there.
SELECT count()
FROM events
WHERE (website_id, subject, subject_id, experiment_id, visitor_id) IN (
        SELECT website_id, subject, subject_id, experiment_id, visitor_id
        FROM sought
    )
    AND event_id IN (SELECT event_id FROM sought)
    AND (website_id, subject, subject_id, experiment_id, visitor_id, event_id, toString(writer), ingested_at) IN (
        SELECT website_id, subject, subject_id, experiment_id, visitor_id, event_id, writer, ingested_at
        FROM sought
    )
