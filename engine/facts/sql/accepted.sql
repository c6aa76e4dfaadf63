-- one row per subject: when the newest event of any of its visitors was accepted, in milliseconds since 1970. All events
-- of a visitor count, because a goal without exposures, and being automated, change all that the visitor saw.
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
        AND {{.Where}}
    GROUP BY website_id, visitor_id
)
ARRAY JOIN subjects AS of
WHERE of_subject != 'none'
GROUP BY website_id, of_subject, of_id, of_experiment
SETTINGS optimize_aggregation_in_order = 1
