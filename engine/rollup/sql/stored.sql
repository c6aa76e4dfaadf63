-- One row: the number of events of a subject up to a position.
SELECT count()
FROM {{.Order.Events}}
WHERE website_id = {website_id:Int64}
    AND subject = {subject:String}
    AND subject_id = {subject_id:Int64}
    AND experiment_id = {experiment_id:Int64}
    AND {{.Order.Until}}
