-- Deletes the rows of the subjects. A widget includes its experiments.
ALTER TABLE daily DELETE
WHERE (website_id, subject, subject_id) IN arrayZip({website_ids:Array(Int64)}, {subjects:Array(String)}, {subject_ids:Array(Int64)})
SETTINGS mutations_sync = 1
