-- One row per campaign or widget with counters that have a later event than the events, because the later events were
-- deleted.
SELECT DISTINCT
    website_id,
    toString(subject) AS of,
    subject_id
FROM
(
    -- one row per campaign, widget or experiment, and table
    SELECT true AS stored, website_id, subject, subject_id, experiment_id, max(time) AS newest
    FROM events
    GROUP BY website_id, subject, subject_id, experiment_id
    UNION ALL
    SELECT false, website_id, subject, subject_id, experiment_id, max(newest_event)
    FROM subject_stats
    GROUP BY website_id, subject, subject_id, experiment_id
)
GROUP BY website_id, subject, subject_id, experiment_id
HAVING maxIf(newest, NOT stored) > maxIf(newest, stored)
