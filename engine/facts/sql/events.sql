-- one row per stored event, copies included, of the visitors in touched, by visitor
SELECT
    website_id,
    visitor_id,
    toUInt8(subject),
    subject_id,
    experiment_id,
    event_id,
    toUnixTimestamp64Milli(time),
    variation_id,
    toUInt8(event),
    goal_id,
    value,
    profit,
    extra_value,
    toUnixTimestamp64Milli(ingested_at),
    if(event = 'view', concatWithSeparator('\0', {{.Attributes}}), '')
FROM sent_events
WHERE (website_id, visitor_id) IN touched
    AND (website_id, visitor_id) >= ({first_website:Int64}, {first_visitor:UInt64})
    AND (website_id, visitor_id) <= ({last_website:Int64}, {last_visitor:UInt64})
    AND ingested_at <= fromUnixTimestamp64Milli({through:Int64}, 'UTC')
ORDER BY website_id, visitor_id
