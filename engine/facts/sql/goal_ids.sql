-- one row per event id with which a goal is stored, in one pass over the events of a website
SELECT DISTINCT event_id
FROM {{.Sent}}
WHERE website_id = {website_id:Int64}
    AND event = 'goal'
    AND event_id IN {ids:Array(UInt64)}
