-- Deletes rejected lines that contain the id of a visitor, as it was sent or as JSON encodes it.
ALTER TABLE rejects DELETE
WHERE arrayExists(visitor -> position(text, visitor) > 0 OR position(reason, visitor) > 0, {visitors:Array(String)})
    AND (empty({website_ids:Array(Int64)}) OR website_id = 0 OR website_id IN {website_ids:Array(Int64)})
SETTINGS mutations_sync = 1
