-- The rows whose subject, visitor and event id are in lookup.
WHERE (website_id, subject, subject_id, experiment_id, visitor_id) IN (
        SELECT website_id, subject, subject_id, experiment_id, visitor_id
        FROM lookup
    )
    AND event_id IN (SELECT event_id FROM lookup)
