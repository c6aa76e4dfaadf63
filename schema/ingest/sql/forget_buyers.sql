-- Deletes the events that name some customers, and those of some visitors.
ALTER TABLE events{{.Local}}{{.On}} DELETE
WHERE details != '' AND (website_id, JSONExtractString(details, 'customer')) IN arrayZip({customer_websites:Array(Int64)}, {customer_names:Array(String)})
    OR (website_id, visitor_id) IN arrayZip({visitor_websites:Array(Int64)}, {visitor_ids:Array(UInt64)})
SETTINGS mutations_sync = {{if .Cluster}}1{{else}}2{{end}}
