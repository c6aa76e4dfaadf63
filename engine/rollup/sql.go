package rollup

import (
	"embed"
	"strings"
	"text/template"

	"lifthouse/engine/source"
)

//go:embed sql/rebuild.sql sql/touched.sql sql/frequent.sql sql/rollup.sql sql/rollup_top.sql
var sqlFiles embed.FS

var sqlTemplates = template.Must(template.New("").Option("missingkey=error").ParseFS(sqlFiles, "sql/*.sql"))

func mustRender(file string, slots any) string {
	var q source.Query
	if err := render(&q, file, slots); err != nil {
		panic(err) // the files are embedded
	}
	return q.SQL
}

// render sets the text of a statement.
func render(q *source.Query, file string, slots any) error {
	var text strings.Builder
	if err := sqlTemplates.ExecuteTemplate(&text, file, slots); err != nil {
		return err
	}
	q.SQL = text.String()
	return nil
}
