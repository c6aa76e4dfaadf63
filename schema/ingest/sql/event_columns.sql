-- One row is a stored event. A WHERE clause follows.
SELECT
    website_id, subject, subject_id, experiment_id, visitor_id, event_id, time, variation_id, event,
    goal_id, value, profit, extra_value, device, browser, os, country, region, city, channel,
    referrer, utm_source, utm_medium, utm_campaign, utm_content, utm_term, first_visit_page,
    visitor_type, revision, cancelled
FROM events
