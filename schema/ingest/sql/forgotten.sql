-- One row: what is stored of the visitors.
SELECT
    count()                                                                  AS events,
    uniqExact((website_id, subject, subject_id, experiment_id))              AS subjects
FROM events
WHERE visitor_id IN {visitor_ids:Array(UInt64)}
    AND (website_id IN {website_ids:Array(Int64)} OR empty({website_ids:Array(Int64)}))
