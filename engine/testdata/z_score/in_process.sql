-- website_id           1
-- subject              campaign
-- subject_id           1
-- experiment_id        0
-- from                 1970-01-01 00:00:00 +0000 UTC
-- to                   2200-01-01 00:00:00 +0000 UTC
-- goal_id              1
-- outlier_least        -6163136164965
-- outlier_most         4311284471503
-- one row per event that the report needs, for subjects with few events
SELECT
    visitor_id,
    toUnixTimestamp64Milli(time)                               AS at,
    variation_id,
    if(event = 'view' OR event = 'goal' AND goal_id = {goal_id:Int64} AND value >= {outlier_least:Int64} AND value <= {outlier_most:Int64}, toUInt8(event), 0)       AS kind,
    value,
    profit,
    extra_value
FROM events
WHERE website_id = {website_id:Int64}
    AND subject = {subject:String}
    AND subject_id = {subject_id:Int64}
    AND experiment_id = {experiment_id:Int64}
    AND (event = 'view' OR event = 'goal' AND goal_id = {goal_id:Int64} AND value >= {outlier_least:Int64} AND value <= {outlier_most:Int64})
