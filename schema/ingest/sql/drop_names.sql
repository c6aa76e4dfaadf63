-- Deletes the names of campaigns, variations and goals, and of the variations of these campaigns.
ALTER TABLE names DELETE
WHERE (kind = 'campaign' AND (website_id, id) IN arrayZip({campaign_websites:Array(Int64)}, {campaign_ids:Array(Int64)}))
    OR (kind = 'variation' AND (website_id, campaign_id) IN arrayZip({campaign_websites:Array(Int64)}, {campaign_ids:Array(Int64)}))
    OR (kind = 'variation' AND (website_id, campaign_id, id)
        IN arrayZip({variation_websites:Array(Int64)}, {variation_campaigns:Array(Int64)}, {variation_ids:Array(Int64)}))
    OR (kind = 'goal' AND (website_id, id) IN arrayZip({goal_websites:Array(Int64)}, {goal_ids:Array(Int64)}))
SETTINGS mutations_sync = 1
