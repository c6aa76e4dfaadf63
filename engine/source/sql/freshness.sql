-- one row: number of stored events of the subject, last acceptance time and latest event time
SELECT
    sum(rows)          AS events,
    max(last_ingested) AS last_ingested,
    max(newest_event)  AS newest_event
FROM {counters:Identifier}
WHERE website_id = {website_id:Int64}
    AND subject = {subject:String}
    AND subject_id = {subject_id:Int64}
    AND experiment_id = {experiment_id:Int64}
