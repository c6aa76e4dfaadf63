-- Deletes the events of campaigns, variations and goals.
ALTER TABLE events{{.Local}}{{.On}} DELETE
WHERE (subject = 'campaign' AND (website_id, subject_id) IN arrayZip({campaign_websites:Array(Int64)}, {campaign_ids:Array(Int64)}))
    OR (subject = 'campaign' AND (website_id, subject_id, variation_id)
        IN arrayZip({variation_websites:Array(Int64)}, {variation_campaigns:Array(Int64)}, {variation_ids:Array(Int64)}))
    OR (event = 'goal' AND (website_id, goal_id) IN arrayZip({goal_websites:Array(Int64)}, {goal_ids:Array(Int64)}))
SETTINGS mutations_sync = {{if .Cluster}}1{{else}}2{{end}}
