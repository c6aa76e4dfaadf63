INSERT INTO looks
(
    website_id, subject, subject_id, experiment_id, question, goal_id, metric, conversion_window, kind, variation_id, look,
    ended_at, body, recorded_at
)
