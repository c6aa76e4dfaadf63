-- As standing_events, for a batch of many subjects: the key's ranges are given one by one.
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
WHERE (website_id, subject, subject_id, experiment_id, visitor_id) IN arrayZip(
        {website_ids:Array(Int64)},
        {subjects:Array(String)},
        {subject_ids:Array(Int64)},
        {experiment_ids:Array(Int64)},
        {visitor_ids:Array(UInt64)})
    AND event_id IN {event_ids:Array(UInt64)}
