-- one row per subject: the state of its latest complete generation
SELECT
    website_id,
    subject,
    subject_id,
    experiment_id,
    bucket,
    generation,
    maxMap(state) AS reached,
    sum(visitors) AS inserts
FROM rollups
WHERE is_cell = 0
GROUP BY website_id, subject, subject_id, experiment_id, bucket, generation
HAVING reached['layout'] = {layout:Int64}
ORDER BY website_id, subject, subject_id, experiment_id, generation DESC
LIMIT 1 BY website_id, subject, subject_id, experiment_id
