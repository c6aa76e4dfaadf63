-- one row per subject: when the newest event of any of its visitors was accepted, in milliseconds since 1970. All events
-- of a visitor count, because a goal without exposures, and being automated, change all that the visitor saw.
SELECT
    website_id,
    tupleElement(of, 1)                                     AS of_subject,
    tupleElement(of, 2)                                     AS of_id,
    tupleElement(of, 3)                                     AS of_experiment,
    toUnixTimestamp64Milli(max(newest))                     AS newest_ms
FROM (
    SELECT
        website_id, visitor_id,
        groupUniqArray((toString(subject), subject_id, experiment_id)) AS subjects,
        max(ingested_at)                                    AS newest
    FROM {{.Sent}}
    WHERE ingested_at <= fromUnixTimestamp64Milli({through:Int64}, 'UTC')
        AND {{.Where}}
    GROUP BY website_id, visitor_id
)
ARRAY JOIN subjects AS of
WHERE of_subject != 'none'
GROUP BY website_id, of_subject, of_id, of_experiment
UNION ALL
-- and one row per subject whose visitors have customers: when the newest order of any of these was accepted
SELECT
    website_id,
    toString(subject)                                       AS of_subject,
    subject_id                                              AS of_id,
    experiment_id                                           AS of_experiment,
    toUnixTimestamp64Milli(max(newest))                     AS newest_ms
FROM (
    SELECT website_id, visitor_id, subject, subject_id, experiment_id
    FROM {{.Sent}}
    WHERE subject != 'none'
        AND (website_id, visitor_id) IN (
            SELECT website_id, visitor_id
            FROM customers
            WHERE visitor_id != 0
                AND (website_id, customer_id) IN (
                    SELECT website_id, customer_id
                    FROM customers
                    WHERE ingested_at > fromUnixTimestamp64Milli({after:Int64}, 'UTC')
                )
        )
) AS seen
INNER JOIN (
    SELECT website_id, visitor_id, max(newest) AS newest
    FROM (SELECT website_id, customer_id, visitor_id FROM customers WHERE visitor_id != 0) AS named
    INNER JOIN (
        SELECT website_id, customer_id, max(ingested_at) AS newest
        FROM customers
        WHERE ingested_at > fromUnixTimestamp64Milli({after:Int64}, 'UTC')
            AND ingested_at <= fromUnixTimestamp64Milli({through:Int64}, 'UTC')
        GROUP BY website_id, customer_id
    ) AS orders USING (website_id, customer_id)
    GROUP BY website_id, visitor_id
) AS ordered USING (website_id, visitor_id)
GROUP BY website_id, of_subject, of_id, of_experiment
SETTINGS optimize_aggregation_in_order = 1
