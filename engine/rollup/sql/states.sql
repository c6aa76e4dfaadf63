-- one row per subject: the state of its latest complete generation
SELECT
    website_id,
    subject,
    subject_id,
    experiment_id,
    generation,
    max(state_shares_since),
    toUInt64(sum(state_events)),
    max(state_through),
    max(state_newest)
FROM rollups
WHERE cube_name = 'state'
GROUP BY website_id, subject, subject_id, experiment_id, generation
HAVING max(state_layout) = {layout:UInt32}
ORDER BY website_id, subject, subject_id, experiment_id, generation DESC
LIMIT 1 BY website_id, subject, subject_id, experiment_id
