package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"lifthouse/engine/tables"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestViewsOnAServer creates the printed views on a ClickHouse server. The user of the views reads them, and neither
// the token nor another database.
func TestViewsOnAServer(t *testing.T) {
	s := newShops(t)
	server := schematest.SharedServer(t)
	store := server.CreateMigrated(t)
	token := s.newToken(1, 0, catalogue.ScopeRead)
	conn := schematest.OpenConnection(t, server.DatabaseAddress("default"))
	// The server of the tests cannot create users: it has this one, with the grants that are printed.
	const user = "CREATE USER IF NOT EXISTS lifthouse_reader IDENTIFIED BY 'a password' SETTINGS readonly = 2"
	const grant = "GRANT SELECT ON lifthouse_tables.* TO lifthouse_reader"
	access := 0
	statements := strings.NewReplacer("TOKEN", token, "PASSWORD", "a password").Replace(tables.Views(s.URL))
	for statement := range strings.SplitSeq(statements, ";\n") {
		switch strings.TrimSpace(statement) {
		case "":
		case user, grant:
			must.OK(t, conn.Exec(t.Context(), "SELECT formatQuery({statement:String})",
				clickhouse.Named("statement", statement)), "%s", statement)
			access++
		default:
			must.OK(t, conn.Exec(t.Context(), statement), "%s", statement)
		}
	}
	must.Equal(t, access, 2, "statements about the user in %s", statements)
	reader := schematest.OpenConnection(t, fmt.Sprintf("clickhouse://lifthouse_reader:r@%s/lifthouse_tables",
		server.Native.ListenAddress()))
	for i := range tables.All {
		name := tables.All[i].Name
		lines := s.Get(tablesPath + "/" + name + ".ndjson").Send().RequireStatus(http.StatusOK).Text
		var rows uint64
		must.OK(t, reader.QueryRow(t.Context(), "SELECT count() FROM "+name).Scan(&rows), "%s", name)
		check.Equal(t, int(rows), strings.Count(lines, "\n"), "rows of "+name) //nolint:gosec // few
		for j := range tables.All[i].Columns {
			column := tables.All[i].Columns[j].Name
			query := fmt.Sprintf("SELECT max(%s) FROM %s FORMAT Null", column, name)
			must.OK(t, reader.Exec(t.Context(), query), query)
		}
	}
	var visitors int64
	must.OK(t, reader.QueryRow(t.Context(),
		"SELECT toInt64(sum(visitors)) FROM series WHERE subjectId = 41").Scan(&visitors))
	check.Equal(t, visitors, 500, "visitors of campaign 41 in series")
	var shown string
	must.OK(t, reader.QueryRow(t.Context(), "SHOW CREATE VIEW results").Scan(&shown))
	check.That(t, !strings.Contains(shown, token), "the user of the views sees the token: %s", shown)
	for _, statement := range []string{
		"SELECT count() FROM " + store + ".events", "SELECT * FROM url('" + s.URL + "/healthz', LineAsString)",
		"INSERT INTO results (websiteId) VALUES (1)",
	} {
		err := reader.Exec(t.Context(), statement)
		check.That(t, err != nil, "the user of the views may %s", statement)
	}
}
