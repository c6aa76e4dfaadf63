-- The stored rows whose subject, visitor and event id are in lookup.
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
WHERE (website_id, subject, subject_id, experiment_id, visitor_id) IN (
        SELECT website_id, subject, subject_id, experiment_id, visitor_id
        FROM lookup
    )
    AND event_id IN (SELECT event_id FROM lookup)
