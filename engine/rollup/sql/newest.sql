-- One row per subject with events between two positions: the last of their blocks.
SELECT
    website_id,
    toString(subject) AS of,
    subject_id,
    experiment_id,
    toUInt64(max({{.Order.Number}})) AS block
FROM {{.Order.Events}}
WHERE {{.Order.Since}}
    AND {{.Order.Until}}
GROUP BY website_id, subject, subject_id, experiment_id
