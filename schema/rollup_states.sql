-- One row per subject and generation: the state of the rollup.
SELECT
    website_id,
    subject,
    subject_id,
    experiment_id,
    generation,
    sum(visitors)          AS complete,
    toInt64(sum(value))    AS shares_since,
    toUInt64(sum(events))  AS events,
    fromUnixTimestamp64Milli(toInt64(sum(events_squares)), 'UTC')    AS through,
    fromUnixTimestamp64Milli(toInt64(sum(value_times_goals)), 'UTC') AS newest
FROM rollups
WHERE cube_name = 'state'
    AND goal_id = {layout:Int64}
GROUP BY website_id, subject, subject_id, experiment_id, generation
ORDER BY website_id, subject, subject_id, experiment_id, generation DESC
