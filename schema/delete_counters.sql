-- Deletes the counters of the subjects. The next statement inserts them from the events.
ALTER TABLE subject_stats DELETE
WHERE (website_id, toString(subject), subject_id, experiment_id) IN arrayZip(
    {websites:Array(Int64)},
    {subjects:Array(String)},
    {subject_ids:Array(Int64)},
    {experiment_ids:Array(Int64)})
SETTINGS mutations_sync = 1
