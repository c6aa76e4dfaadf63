-- Deletes the events of the visitors.
ALTER TABLE events{{.Local}}{{.On}} DELETE
WHERE visitor_id IN {visitor_ids:Array(UInt64)}
    AND (website_id IN {website_ids:Array(Int64)} OR empty({website_ids:Array(Int64)}))
SETTINGS mutations_sync = {{if .Cluster}}1{{else}}2{{end}}
