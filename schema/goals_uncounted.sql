-- One row: the number of derived rows that are missing. An unattributed goal needs a row for each subject that its visitor
-- saw before it.
WITH
    unattributed AS -- one row per unattributed goal
    (
        SELECT website_id, visitor_id, event_id, time
        FROM events
        WHERE subject = 'none' AND event = 'goal'
    ),
    exposed AS -- one row per visitor and subject
    (
        SELECT website_id, subject, subject_id, experiment_id, visitor_id, min(time) AS first_view
        FROM events
        WHERE subject != 'none' AND event = 'view' AND (website_id, visitor_id) IN (SELECT website_id, visitor_id FROM unattributed)
        GROUP BY website_id, subject, subject_id, experiment_id, visitor_id
    ),
    counted AS -- one row per goal and subject
    (
        SELECT website_id, subject, subject_id, experiment_id, visitor_id, event_id
        FROM events
        WHERE subject != 'none' AND event = 'goal' AND (website_id, visitor_id, event_id) IN (SELECT website_id, visitor_id, event_id FROM unattributed)
    )
SELECT count() AS uncounted
FROM unattributed
INNER JOIN exposed ON unattributed.website_id = exposed.website_id AND unattributed.visitor_id = exposed.visitor_id
LEFT ANTI JOIN counted ON unattributed.website_id = counted.website_id AND unattributed.visitor_id = counted.visitor_id AND unattributed.event_id = counted.event_id
    AND exposed.subject = counted.subject AND exposed.subject_id = counted.subject_id AND exposed.experiment_id = counted.experiment_id
WHERE exposed.first_view <= unattributed.time
