-- One row per conclusion.
SELECT
    website_id,
    subject,
    subject_id,
    experiment_id,
    question,
    goal_id,
    metric,
    segment,
    status,
    variation_id,
    basis,
    decided_at,
    visitors,
    comparison,
    recorded_at
FROM conclusions
ORDER BY recorded_at
