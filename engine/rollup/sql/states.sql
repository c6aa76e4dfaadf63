-- one row per subject: the state of its latest complete generation
SELECT
    website_id,
    subject,
    subject_id,
    experiment_id,
    generation,
    maxMap(state) AS reached
FROM rollups
WHERE cube_name = 'state'
GROUP BY website_id, subject, subject_id, experiment_id, generation
HAVING reached['layout'] = {layout:Int64}
ORDER BY website_id, subject, subject_id, experiment_id, generation DESC
LIMIT 1 BY website_id, subject, subject_id, experiment_id
