-- one row per subject and experiment with stored events
SELECT DISTINCT website_id, toString(subject) AS of, subject_id, experiment_id
FROM events
WHERE (website_id, subject, subject_id) IN arrayZip({website_ids:Array(Int64)}, {subjects:Array(String)}, {subject_ids:Array(Int64)})
