-- one row per stored event, copies included, with a condition on visitors
SELECT
    website_id, visitor_id, toUInt8(subject), subject_id, experiment_id, event_id, revision, cancelled,
    toUnixTimestamp64Milli(time),
    variation_id, toUInt8(event), goal_id, value, profit, extra_value,
    toUnixTimestamp64Milli(ingested_at) AS accepted_ms,
    version,
    if(event = 'view', attributes, ''),
    details
FROM {{.Sent}}
PREWHERE {{.Where}} -- then the other columns of few rows are read
WHERE accepted_ms <= {through:Int64}
SETTINGS use_skip_indexes = 0 -- the key excludes nearly all other rows
