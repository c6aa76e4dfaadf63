-- the recorded looks, one row per variation; of several rows of a look, the first one
SELECT
    website_id,
    subject,
    subject_id,
    experiment_id,
    question,
    goal_id,
    metric,
    variation_id,
    look,
    ended_at,
    body,
    recorded_at
FROM looks
ORDER BY website_id, subject, subject_id, experiment_id, question, goal_id, metric, variation_id, look, recorded_at, body
LIMIT 1 BY website_id, subject, subject_id, experiment_id, question, goal_id, metric, variation_id, look
