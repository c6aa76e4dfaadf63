-- one row per subject with cells by day
SELECT DISTINCT website_id, toUInt8(subject), subject_id, experiment_id
FROM facts
WHERE grain = 'day'
    AND goal_id = 0
