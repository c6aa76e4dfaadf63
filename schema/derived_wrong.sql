-- One row: the number of derived rows that differ from their unattributed goal or precede the visitor's first view of the
-- subject.
WITH
    derived_rows AS -- one row per derived row
    (
        SELECT
            website_id, subject, subject_id, experiment_id, visitor_id, event_id, time,
            cityHash64(time, goal_id, value, profit, extra_value, device, browser, os, country, region, city, channel, referrer,
                utm_source, utm_medium, utm_campaign, utm_content, utm_term, first_visit_page, visitor_type) AS content
        FROM events
        WHERE derived
    ),
    goals AS -- one row per unattributed goal
    (
        SELECT
            website_id, visitor_id, event_id,
            cityHash64(time, goal_id, value, profit, extra_value, device, browser, os, country, region, city, channel, referrer,
                utm_source, utm_medium, utm_campaign, utm_content, utm_term, first_visit_page, visitor_type) AS content
        FROM events
        WHERE subject = 'none' AND event = 'goal'
    ),
    exposures AS -- one row per visitor and subject
    (
        SELECT website_id, subject, subject_id, experiment_id, visitor_id, min(time) AS first_view
        FROM events
        WHERE subject != 'none' AND event = 'view' AND (website_id, visitor_id) IN (SELECT website_id, visitor_id FROM derived_rows)
        GROUP BY website_id, subject, subject_id, experiment_id, visitor_id
    )
SELECT count() AS wrong
FROM derived_rows AS d
INNER JOIN goals AS g ON g.website_id = d.website_id AND g.visitor_id = d.visitor_id AND g.event_id = d.event_id
INNER JOIN exposures AS e ON e.website_id = d.website_id AND e.subject = d.subject AND e.subject_id = d.subject_id
    AND e.experiment_id = d.experiment_id AND e.visitor_id = d.visitor_id
WHERE d.content != g.content OR e.first_view > d.time
