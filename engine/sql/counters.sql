-- one row per subject, event and goal of the websites: what was ever stored
SELECT
    subject_id,
    event,
    goal_id,
    sum(rows)        AS events,
    sum(value)       AS value,
    sum(extra_value) AS extra_value
FROM subject_stats
WHERE website_id IN {website_ids:Array(Int64)}
    AND subject = {subject:String}
GROUP BY subject_id, event, goal_id
ORDER BY subject_id, event, goal_id
