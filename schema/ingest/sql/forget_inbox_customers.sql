-- Deletes the rows of customers, and of visitors, that are not moved to events yet.
ALTER TABLE events_inbox DELETE
WHERE lower(trimBoth(customer)) IN {texts:Array(String)}
    OR (website_id, xxHash64(visitor)) IN arrayZip({visitor_websites:Array(Int64)}, {visitor_ids:Array(UInt64)})
SETTINGS mutations_sync = 1
