-- One row per event of the sought visitors and ids of which this writer has a copy, and another writer an earlier one.
SELECT
    website_id,
    subject,
    subject_id,
    experiment_id,
    visitor_id,
    event_id
FROM events
WHERE (website_id, subject, subject_id, experiment_id, visitor_id) IN (
        SELECT website_id, subject, subject_id, experiment_id, visitor_id
        FROM sought
    )
    AND event_id IN (SELECT event_id FROM sought)
GROUP BY website_id, subject, subject_id, experiment_id, visitor_id, event_id
HAVING countIf(writer = {writer:String}) > 0
    AND argMin(writer, _block_number) != {writer:String}
