-- One row per subject: the number of the visitors' events.
SELECT website_id, toString(subject) AS of, subject_id, experiment_id, count() AS events
FROM events
WHERE visitor_id IN {visitor_ids:Array(UInt64)}
    AND (website_id IN {website_ids:Array(Int64)} OR empty({website_ids:Array(Int64)}))
GROUP BY website_id, subject, subject_id, experiment_id
