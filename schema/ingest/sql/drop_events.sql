-- Deletes the events of the subjects.
ALTER TABLE events{{.Local}}{{.On}} DELETE
WHERE (website_id, subject, subject_id) IN arrayZip({website_ids:Array(Int64)}, {subjects:Array(String)}, {subject_ids:Array(Int64)})
SETTINGS mutations_sync = {{if .Cluster}}1{{else}}2{{end}}
