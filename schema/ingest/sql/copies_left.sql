-- One row: the number of copies in lookup that are still stored.
SELECT count()
FROM events
WHERE (website_id, subject, subject_id, experiment_id, visitor_id) IN (
        SELECT website_id, subject, subject_id, experiment_id, visitor_id
        FROM lookup
    )
    AND event_id IN (SELECT event_id FROM lookup)
    AND (website_id, subject, subject_id, experiment_id, visitor_id, event_id, toString(writer), ingested_at) IN (
        SELECT website_id, subject, subject_id, experiment_id, visitor_id, event_id, writer, ingested_at
        FROM lookup
    )
