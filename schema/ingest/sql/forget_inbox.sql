-- Deletes the visitors' rows that are not moved to events yet.
ALTER TABLE events_inbox DELETE
WHERE xxHash64(visitor) IN {visitor_ids:Array(UInt64)}
    AND (website_id IN {website_ids:Array(Int64)} OR empty({website_ids:Array(Int64)}))
SETTINGS mutations_sync = 1
