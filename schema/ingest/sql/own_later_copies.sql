-- One row per event in lookup of which this insert has a copy that is not the first one. The first copy is the one with
-- the smallest (_block_number, writer, ingested_at). No process ever removes the first copy, whichever copies it sees.
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
        FROM lookup
    )
    AND event_id IN (SELECT event_id FROM lookup)
GROUP BY website_id, subject, subject_id, experiment_id, visitor_id, event_id
HAVING countIf(writer = {writer:String} AND ingested_at = {ingested_at:DateTime64(3, 'UTC')}) > 0
    AND argMin((writer, ingested_at), (_block_number, writer, ingested_at)) != ({writer:String}, {ingested_at:DateTime64(3, 'UTC')})
