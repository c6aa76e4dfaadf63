-- One row per visitor and subject of the website: the visitor's first view of the subject.
SELECT
    subject,
    subject_id,
    experiment_id,
    visitor_id,
    first_view.1 AS first_time,
    first_view.2 AS first_variation_id,
    first_view.3 AS first_event_id
FROM (
    SELECT
        subject,
        subject_id,
        experiment_id,
        visitor_id,
        min((time, variation_id, event_id)) AS first_view
    FROM events
    WHERE website_id = {website_id:Int64}
        AND visitor_id IN {visitor_ids:Array(UInt64)}
        AND event = 'view'
    GROUP BY subject, subject_id, experiment_id, visitor_id
)
