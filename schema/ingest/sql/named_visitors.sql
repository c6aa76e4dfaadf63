-- one row per visitor with events or facts of campaigns, variations and goals; facts without events are those of an
-- interrupted deletion
SELECT DISTINCT website_id, visitor_id
FROM events
WHERE (subject = 'campaign' AND (website_id, subject_id) IN arrayZip({campaign_websites:Array(Int64)}, {campaign_ids:Array(Int64)}))
    OR (subject = 'campaign' AND (website_id, subject_id, variation_id)
        IN arrayZip({variation_websites:Array(Int64)}, {variation_campaigns:Array(Int64)}, {variation_ids:Array(Int64)}))
    OR (event = 'goal' AND (website_id, goal_id) IN arrayZip({goal_websites:Array(Int64)}, {goal_ids:Array(Int64)}))
UNION DISTINCT
SELECT DISTINCT website_id, visitor_id
FROM facts
WHERE grain IN ('visitor', 'goal')
    AND ((subject = 'campaign' AND (website_id, subject_id) IN arrayZip({campaign_websites:Array(Int64)}, {campaign_ids:Array(Int64)}))
        OR (website_id, goal_id) IN arrayZip({goal_websites:Array(Int64)}, {goal_ids:Array(Int64)}))
