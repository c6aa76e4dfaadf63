-- one row per subject with stored events: their number
SELECT website_id, toString(subject) AS of, subject_id, count() AS events
FROM events
WHERE (website_id, subject, subject_id) IN arrayZip({website_ids:Array(Int64)}, {subjects:Array(String)}, {subject_ids:Array(Int64)})
GROUP BY website_id, subject, subject_id
