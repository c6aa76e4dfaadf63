-- one row per view or goal event of several campaigns with few events
SELECT
    subject_id,
    visitor_id,
    toUnixTimestamp64Milli(time)    AS at,
    variation_id,
    toUInt8(event)                  AS kind,
    value,
    profit,
    extra_value,
    goal_id
FROM events
WHERE website_id = {website_id:Int64}
    AND subject = 'campaign'
    AND subject_id IN {subject_ids:Array(Int64)}
    AND experiment_id = 0
    AND event IN ('view', 'goal')
