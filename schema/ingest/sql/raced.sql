-- One row per event asked for of which this writer has a copy, and another writer an earlier one.
SELECT
    website_id,
    subject,
    subject_id,
    experiment_id,
    visitor_id,
    event_id
FROM events
WHERE (website_id, subject, subject_id, experiment_id, visitor_id) IN arrayZip(
        {website_ids:Array(Int64)},
        {subjects:Array(String)},
        {subject_ids:Array(Int64)},
        {experiment_ids:Array(Int64)},
        {visitor_ids:Array(UInt64)})
    AND event_id IN {event_ids:Array(UInt64)}
GROUP BY website_id, subject, subject_id, experiment_id, visitor_id, event_id
HAVING countIf(writer = {writer:String}) > 0
    AND argMin(writer, _block_number) != {writer:String}
