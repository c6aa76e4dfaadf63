-- The stored rows of one subject that share an event id with a batch, looked up in the ranges of the batch's visitors.
SELECT
    website_id,
    subject,
    subject_id,
    experiment_id,
    visitor_id,
    event_id,
    time,
    variation_id,
    event,
    goal_id,
    value,
    profit,
    extra_value,
    device,
    browser,
    os,
    country,
    region,
    city,
    channel,
    referrer,
    utm_source,
    utm_medium,
    utm_campaign,
    utm_content,
    utm_term,
    first_visit_page,
    visitor_type
FROM events
WHERE website_id = {website_id:Int64}
    AND subject = {subject:String}
    AND subject_id = {subject_id:Int64}
    AND experiment_id = {experiment_id:Int64}
    AND visitor_id IN {visitor_ids:Array(UInt64)}
    AND event_id IN {event_ids:Array(UInt64)}
