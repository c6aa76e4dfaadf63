package rollup

import (
	"embed"
	"text/template"

	"lifthouse/engine/source"
)

//go:embed sql/rebuild.sql sql/touched.sql sql/frequent.sql sql/rollup.sql sql/rollup_top.sql
var sqlFiles embed.FS

var sqlTemplates = template.Must(template.New("").Option("missingkey=error").ParseFS(sqlFiles, "sql/*.sql"))

func mustRender(file string, slots any) string {
	var q source.Query
	if err := q.RenderFrom(sqlTemplates, file, slots); err != nil {
		panic(err) // the files are embedded
	}
	return q.SQL
}
