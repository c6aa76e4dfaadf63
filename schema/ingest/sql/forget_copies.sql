-- Removes the record of removed copies of the visitors' events; the counters follow from the events then.
ALTER TABLE removed_copies DELETE
WHERE visitor_id IN {visitor_ids:Array(UInt64)}
    AND (website_id IN {website_ids:Array(Int64)} OR empty({website_ids:Array(Int64)}))
SETTINGS mutations_sync = 1
