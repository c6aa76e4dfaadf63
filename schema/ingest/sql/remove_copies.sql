-- Deletes copies of one insert. It does not wait for the mutation, which also covers parts without copies.
ALTER TABLE events DELETE
WHERE writer = {writer:String}
    AND ingested_at = fromUnixTimestamp64Milli({ingested_at:Int64}, 'UTC')
    AND (website_id, subject, subject_id, experiment_id, visitor_id, event_id) IN arrayZip(
        {website_ids:Array(Int64)},
        {subjects:Array(String)},
        {subject_ids:Array(Int64)},
        {experiment_ids:Array(Int64)},
        {visitor_ids:Array(UInt64)},
        {event_ids:Array(UInt64)})
SETTINGS mutations_sync = 0
