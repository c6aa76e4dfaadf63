-- One row per insert of events that are not in the rollup, in ascending order.
SELECT
    {{.Order.Number}} AS number,
    count() AS events
FROM {{.Order.Events}}
WHERE website_id = {website_id:Int64}
    AND subject = {subject:String}
    AND subject_id = {subject_id:Int64}
    AND experiment_id = {experiment_id:Int64}
    AND {{.Order.Since}}
    AND {{.Order.Until}}
GROUP BY number
ORDER BY number
