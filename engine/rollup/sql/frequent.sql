-- One row per value of an attribute, by views in descending order.
SELECT {{.Attribute}}
FROM {{.Order.Events}}
WHERE website_id = {website_id:Int64}
    AND subject = {subject:String}
    AND subject_id = {subject_id:Int64}
    AND experiment_id = {experiment_id:Int64}
    AND event = 'view'
    AND {{.Order.Until}}
GROUP BY {{.Attribute}}
ORDER BY count() DESC, {{.Attribute}}
LIMIT {most:UInt32}
