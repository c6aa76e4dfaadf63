-- One row per campaign, widget or experiment with at least the given number of stored events.
SELECT
    website_id,
    toString(subject)  AS of,
    subject_id,
    experiment_id,
    sum(rows)          AS events,
    max(last_ingested) AS ingested
FROM subject_stats
WHERE subject != 'none'
GROUP BY website_id, subject, subject_id, experiment_id
HAVING events >= {least:UInt64}
ORDER BY website_id, subject, subject_id, experiment_id
