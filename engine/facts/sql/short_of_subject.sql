-- one row per visitor of a subject with fewer stored events, copies included, than its facts were made of
SELECT website_id, visitor_id
FROM (
    SELECT website_id, visitor_id, toInt64(count()) AS events
    FROM {{.Sent}}
    WHERE website_id = {website:Int64}
        AND subject = {subject:String}
        AND subject_id = {id:Int64}
        AND experiment_id = {experiment:Int64}
    GROUP BY website_id, visitor_id
    UNION ALL
    SELECT website_id, visitor_id, -sum(toInt64(sign) * seen) AS events
    FROM {{.Facts}}
    WHERE section = {section:UInt64}
    GROUP BY website_id, visitor_id
)
GROUP BY website_id, visitor_id
HAVING sum(events) < 0
