-- Deletes the records of removed copies of the visitors' events. The counters are corrected afterwards.
ALTER TABLE removed_copies DELETE
WHERE visitor_id IN {visitor_ids:Array(UInt64)}
    AND (website_id IN {website_ids:Array(Int64)} OR empty({website_ids:Array(Int64)}))
SETTINGS mutations_sync = 1
