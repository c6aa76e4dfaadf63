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
-- In clusters of earlier releases, subject_stats has a sharding key, but its rows are on the shards of the events.
SETTINGS optimize_skip_unused_shards = 0, optimize_distributed_group_by_sharding_key = 0
