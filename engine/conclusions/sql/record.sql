INSERT INTO conclusions
(
    website_id, subject, subject_id, experiment_id, question, goal_id, metric, segment,
    status, variation_id, basis, decided_at, visitors, comparison, recorded_at
)
VALUES
