-- The rows of a visitor, in the order of their arrival: of copies, the first one counts.
WHERE visitor_id = {visitor_id:UInt64}
    AND (empty({website_ids:Array(Int64)}) OR website_id IN {website_ids:Array(Int64)})
ORDER BY version DESC, website_id, subject, subject_id, experiment_id, event_id, revision
LIMIT {limit:UInt32}
