-- Removes the sums of a generation and of those before it, but not their states.
ALTER TABLE settled DELETE
WHERE website_id = {website_id:Int64}
    AND subject = {subject:String}
    AND subject_id = {subject_id:Int64}
    AND experiment_id = {experiment_id:Int64}
    AND generation <= {generation:UInt64}
    AND facet != 'state'
SETTINGS mutations_sync = 2
