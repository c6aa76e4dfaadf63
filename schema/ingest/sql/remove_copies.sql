-- Removes copies that one writer stored. It does not wait for parts that have none of them.
ALTER TABLE events DELETE
WHERE writer = {writer:String}
    AND (website_id, subject, subject_id, experiment_id, visitor_id, event_id, ingested_at) IN arrayZip(
        {website_ids:Array(Int64)},
        {subjects:Array(String)},
        {subject_ids:Array(Int64)},
        {experiment_ids:Array(Int64)},
        {visitor_ids:Array(UInt64)},
        {event_ids:Array(UInt64)},
        {ingested_at:Array(DateTime64(3, 'UTC'))})
SETTINGS mutations_sync = 0
