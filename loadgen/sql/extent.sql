-- One row is the campaign: how much there is of it, and when.
SELECT
    count() AS events,
    uniqExact(visitor_id) AS visitors,
    min(time) AS first,
    max(time) AS last
FROM events
WHERE website_id = {website_id:Int64}
    AND subject = 'campaign'
    AND subject_id = {campaign_id:Int64}
