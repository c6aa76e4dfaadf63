-- One row per subject that one of the visitors has events of.
SELECT DISTINCT
    website_id,
    toString(subject) AS of,
    subject_id,
    experiment_id
FROM events
WHERE visitor_id IN {visitor_ids:Array(UInt64)}
    AND (website_id IN {website_ids:Array(Int64)} OR empty({website_ids:Array(Int64)}))
