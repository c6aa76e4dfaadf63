-- one row per event of a subject with few events, to be kept in memory
SELECT
    visitor_id,
    toUnixTimestamp64Milli(time)           AS at,
    variation_id,
    toUInt8(event)                         AS kind,
    event_id,
    goal_id,
    value,
    profit,
    extra_value,
    toUnixTimestamp64Milli(ingested_at)    AS accepted_at
FROM events
WHERE website_id = {website_id:Int64}
    AND subject = {subject:String}
    AND subject_id = {subject_id:Int64}
    AND experiment_id = {experiment_id:Int64}
