-- The unattributed goals of the visitors.
WHERE website_id = {website_id:Int64}
    AND subject = 'none'
    AND subject_id = 0
    AND experiment_id = 0
    AND visitor_id IN {visitor_ids:Array(UInt64)}
