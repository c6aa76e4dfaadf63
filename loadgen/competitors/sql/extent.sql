-- Numbers of events and visitors of the campaign, and the times of its first and last event.
SELECT
    count() AS events,
    uniqExact(visitor_id) AS visitors,
    min(time) AS first,
    max(time) AS last
FROM events
WHERE website_id = {website_id:Int64}
    AND subject = 'campaign'
    AND subject_id = {campaign_id:Int64}
