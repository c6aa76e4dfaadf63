-- one row: the number of subjects with fewer stored events, copies included, than their facts were made of
SELECT count()
FROM (
    SELECT website_id, subject, subject_id, experiment_id
    FROM (
        SELECT website_id, subject, subject_id, experiment_id, toInt64(count()) AS events
        FROM {{.Sent}}
        GROUP BY website_id, subject, subject_id, experiment_id
        UNION ALL
        SELECT website_id, subject, subject_id, experiment_id, -sum(toInt64(sign) * seen) AS events
        FROM {{.Facts}}
        WHERE section BETWEEN {first_section:UInt64} AND {last_section:UInt64}
        GROUP BY website_id, subject, subject_id, experiment_id
    )
    GROUP BY website_id, subject, subject_id, experiment_id
    HAVING sum(events) < 0
)
