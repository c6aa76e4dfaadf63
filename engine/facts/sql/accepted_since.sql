-- the rows of accepted.sql of the visitors with events that were accepted after a time
SELECT
    website_id,
    tupleElement(of, 1)                                     AS of_subject,
    tupleElement(of, 2)                                     AS of_id,
    tupleElement(of, 3)                                     AS of_experiment,
    toUnixTimestamp64Milli(max(newest))
FROM (
    SELECT
        website_id, visitor_id,
        groupUniqArray((toString(subject), subject_id, experiment_id)) AS subjects,
        max(ingested_at)                                    AS newest
    FROM {{.Sent}}
    WHERE ingested_at <= fromUnixTimestamp64Milli({through:Int64}, 'UTC')
        AND (website_id, visitor_id) IN (
            SELECT website_id, visitor_id
            FROM {{.Sent}}
            WHERE ingested_at > fromUnixTimestamp64Milli({after:Int64}, 'UTC')
        )
    GROUP BY website_id, visitor_id
)
ARRAY JOIN subjects AS of
WHERE of_subject != 'none'
GROUP BY website_id, of_subject, of_id, of_experiment
