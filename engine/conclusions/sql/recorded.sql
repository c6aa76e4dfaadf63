-- one row per conclusion, in the order in which they were recorded
SELECT
    website_id,
    subject,
    subject_id,
    experiment_id,
    question,
    status,
    variation_id,
    decided_at,
    visitors,
    recorded_at
FROM conclusions
ORDER BY recorded_at
