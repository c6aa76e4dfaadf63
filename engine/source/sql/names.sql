-- one row per given visitor: the dimension value of the first view
SELECT
    visitor_id,
    argMin({{.Dimension}}, (time, variation_id, event_id)) AS dimension
FROM events
WHERE website_id = {website_id:Int64}
    AND subject = {subject:String}
    AND subject_id = {subject_id:Int64}
    AND experiment_id = {experiment_id:Int64}
    AND visitor_id IN {visitor_ids:Array(UInt64)}
    AND event = 'view'
GROUP BY visitor_id
