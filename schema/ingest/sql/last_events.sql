-- The rows accepted since a time, the latest first. The index on ingested_at skips earlier events.
WHERE ingested_at >= {since:DateTime64(3, 'UTC')}
    AND ({website_id:Int64} = 0 OR website_id = {website_id:Int64})
ORDER BY ingested_at DESC, website_id, subject, subject_id, experiment_id, visitor_id, time, event_id, revision
LIMIT {limit:UInt32}
