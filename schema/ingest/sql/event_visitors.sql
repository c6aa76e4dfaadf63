-- One row per view and per unattributed goal: its visitor. Many rows of a visitor follow each other.
SELECT
    website_id,
    visitor_id,
    event = 'view' AS viewed
FROM events
WHERE event = 'view'
    OR subject = 'none'
