-- One row per duplicate of a visitor that arrived in the last week, in the order of arrival.
SELECT
    arrived_at,
    website_id,
    subject,
    subject_id,
    experiment_id,
    variation_id,
    visitor_id,
    event_id,
    event,
    goal_id,
    value,
    time,
    conflict,
    way,
    file,
    line
FROM repeats
WHERE visitor_id = {visitor_id:UInt64}
    AND ({website_id:Int64} = 0 OR website_id = {website_id:Int64})
ORDER BY arrived_at, line
LIMIT {limit:UInt32}
