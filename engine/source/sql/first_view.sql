-- one row: time of the first view of the subject, acceptance time of the first accepted one, and the number of views
SELECT
    min(time)        AS first,
    min(ingested_at) AS accepted,
    count()          AS views
FROM events
WHERE website_id = {website_id:Int64}
    AND subject = {subject:String}
    AND subject_id = {subject_id:Int64}
    AND experiment_id = {experiment_id:Int64}
    AND event = 'view'
