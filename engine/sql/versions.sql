-- one row per subject with events: a number that changes whenever what is stored of it does
SELECT
    website_id,
    subject,
    subject_id,
    experiment_id,
    cityHash64(sum(rows), sum(value), sum(extra_value), max(last_ingested), max(newest_event)) AS version
FROM subject_stats
GROUP BY website_id, subject, subject_id, experiment_id
