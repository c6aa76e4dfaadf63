-- The events of a pass, in the order of the table. 0: derived rows; 1: events that have an exposure; 2: views; 3: unattributed
-- goals.
WHERE multiIf(derived, 0, subject = 'none', 3, event = 'view', 2, 1) = {pass:UInt8}
ORDER BY website_id, subject, subject_id, experiment_id, visitor_id, time, event_id
