-- Deletes the records of the visitors' duplicates.
ALTER TABLE repeats DELETE
WHERE visitor_id IN {visitor_ids:Array(UInt64)}
    AND (website_id IN {website_ids:Array(Int64)} OR empty({website_ids:Array(Int64)}))
SETTINGS mutations_sync = 1
