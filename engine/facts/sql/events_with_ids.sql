-- one row per event id that is stored as a goal, on a pass over the events of a website
SELECT DISTINCT event_id
FROM {{.Sent}}
WHERE website_id = {website_id:Int64}
    AND event = 'goal'
    AND event_id IN {ids:Array(UInt64)}
