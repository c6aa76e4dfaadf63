-- Deletes the events of the visitors from the subjects whose rollups were dropped. Another process may have stored events of
-- other subjects since.
ALTER TABLE events DELETE
WHERE visitor_id IN {visitor_ids:Array(UInt64)}
    AND (website_id, toString(subject), subject_id, experiment_id) IN arrayZip(
        {websites:Array(Int64)},
        {subjects:Array(String)},
        {subject_ids:Array(Int64)},
        {experiment_ids:Array(Int64)})
    AND (website_id IN {website_ids:Array(Int64)} OR empty({website_ids:Array(Int64)}))
SETTINGS mutations_sync = 1
