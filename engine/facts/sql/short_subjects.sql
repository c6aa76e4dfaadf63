-- one row per subject with fewer stored events, copies included, than its facts were made of
SELECT website_id, toUInt8(subject) AS kind, subject_id, experiment_id
FROM (
    SELECT website_id, subject, subject_id, experiment_id, toInt64(count()) AS events
    FROM {{.Sent}}
    GROUP BY website_id, subject, subject_id, experiment_id
    UNION ALL
    SELECT website_id, subject, subject_id, experiment_id, -sum(toInt64(sign) * seen) AS events
    FROM {{.Facts}}
    WHERE {{.InGeneration}}
        AND section BETWEEN {first_section:UInt64} AND {last_section:UInt64}
    GROUP BY website_id, subject, subject_id, experiment_id
)
GROUP BY website_id, kind, subject_id, experiment_id
HAVING sum(events) < 0
