WITH
    first_views AS (  -- one row per visitor with a view: the attribute of the first view
        SELECT
            visitor_id,
            argMin({{.Dimension}}, (time, variation_id, event_id)) AS value
        FROM events
        WHERE website_id = {website_id:Int64}
            AND subject = {subject:String}
            AND subject_id = {subject_id:Int64}
            AND experiment_id = {experiment_id:Int64}
            AND event = 'view'
        GROUP BY visitor_id
    )
-- one row per value, by visitors in descending order: its visitors, the visitors of all values, and the number of values
SELECT
    value,
    toInt64(count())             AS visitors,
    toInt64(sum(count()) OVER ()) AS visitors_in_all,
    toInt64(count() OVER ())     AS values_in_all
FROM first_views
GROUP BY value
ORDER BY visitors DESC, value
LIMIT {limit:UInt32}
