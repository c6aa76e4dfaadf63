package rollup

import (
	"embed"
	"text/template"
)

//go:embed sql/restored.sql sql/newest.sql sql/copies.sql sql/stored.sql sql/accepted.sql sql/extent.sql sql/rebuild.sql sql/touched.sql sql/frequent.sql sql/rollup.sql sql/rollup_top.sql
var sqlFiles embed.FS

var sqlTemplates = template.Must(template.New("").Option("missingkey=error").ParseFS(sqlFiles, "sql/*.sql"))
