-- Copies the events of the campaign. One row is an event.
INSERT INTO {{.Events}}
SELECT *
FROM events
WHERE website_id = {website_id:Int64}
    AND subject = 'campaign'
    AND subject_id = {campaign_id:Int64}
