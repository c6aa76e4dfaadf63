-- One row: the number of copies among the events of a range of visitors.
SELECT toUInt64(sum(rows - 1))
FROM
(
    -- one row per event
    SELECT count() AS rows
    FROM {{.Order.Events}}
    WHERE website_id = {website_id:Int64}
        AND subject = {subject:String}
        AND subject_id = {subject_id:Int64}
        AND experiment_id = {experiment_id:Int64}
        AND {{.Order.Until}}
        AND visitor_id BETWEEN {first_visitor:UInt64} AND {last_visitor:UInt64}
    GROUP BY visitor_id, event_id
)
SETTINGS max_threads = 1
