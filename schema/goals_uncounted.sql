-- Goals that name no exposure and lack a row for a subject whose first view by the visitor came before them.
WITH
    bare AS -- a goal that names no exposure
    (
        SELECT website_id, visitor_id, event_id, time
        FROM events
        WHERE subject = 'none' AND event = 'goal'
    ),
    exposed AS -- a subject that one of their visitors has seen
    (
        SELECT website_id, subject, subject_id, experiment_id, visitor_id, min(time) AS first_view
        FROM events
        WHERE subject != 'none' AND event = 'view' AND (website_id, visitor_id) IN (SELECT website_id, visitor_id FROM bare)
        GROUP BY website_id, subject, subject_id, experiment_id, visitor_id
    ),
    counted AS -- a goal that counts for a subject
    (
        SELECT website_id, subject, subject_id, experiment_id, visitor_id, event_id
        FROM events
        WHERE subject != 'none' AND event = 'goal' AND (website_id, visitor_id, event_id) IN (SELECT website_id, visitor_id, event_id FROM bare)
    )
SELECT count() AS uncounted
FROM bare
INNER JOIN exposed ON bare.website_id = exposed.website_id AND bare.visitor_id = exposed.visitor_id
LEFT ANTI JOIN counted ON bare.website_id = counted.website_id AND bare.visitor_id = counted.visitor_id AND bare.event_id = counted.event_id
    AND exposed.subject = counted.subject AND exposed.subject_id = counted.subject_id AND exposed.experiment_id = counted.experiment_id
WHERE exposed.first_view <= bare.time
