-- Deletes the records of removed copies of the subjects. Their events and counters have been deleted.
ALTER TABLE removed_copies DELETE
WHERE (website_id, subject, subject_id) IN arrayZip({website_ids:Array(Int64)}, {subjects:Array(String)}, {subject_ids:Array(Int64)})
SETTINGS mutations_sync = 1
