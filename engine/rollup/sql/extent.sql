-- One row: number of events accepted up to a time, last acceptance time, latest event time, and variations of views (at
-- most 63).
SELECT
    count()          AS events,
    max(ingested_at) AS through,
    max(time)        AS newest,
    groupUniqArrayIf(63)(variation_id, event = 'view') AS variations
FROM {{.Order.Events}}
WHERE website_id = {website_id:Int64}
    AND subject = {subject:String}
    AND subject_id = {subject_id:Int64}
    AND experiment_id = {experiment_id:Int64}
    AND {{.Order.Until}}
