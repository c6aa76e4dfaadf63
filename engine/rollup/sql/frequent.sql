-- One row per value of the ranked attribute, by views in descending order.
SELECT {{.Ranked}}
FROM {{.Order.Events}}
WHERE website_id = {website_id:Int64}
    AND subject = {subject:String}
    AND subject_id = {subject_id:Int64}
    AND experiment_id = {experiment_id:Int64}
    AND event = 'view'
    AND {{.Order.Until}}
GROUP BY {{.Ranked}}
ORDER BY count() DESC, {{.Ranked}}
LIMIT {most:UInt32}
