package tables

import (
	"fmt"
	"strings"
)

const (
	// viewDatabase is the database of the views. It is not that of a store, which has a table looks.
	viewDatabase = "lifthouse_tables"
	// viewUser is the user who may read the views, and nothing else.
	viewUser = "lifthouse_reader"
)

// Views returns the statements that make a ClickHouse server read the tables of a Lifthouse server at a URL: a view of
// each table, and a user who may read the views. The views run with the rights of who creates them, so the user needs
// no right to open URLs. TOKEN and PASSWORD are to be replaced.
func Views(url string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "CREATE DATABASE IF NOT EXISTS %s;\n", viewDatabase)
	for i := range All {
		t := &All[i]
		columns := make([]string, len(t.Columns))
		for k := range t.Columns {
			columns[k] = t.Columns[k].Name + " " + clickHouseType(&t.Columns[k])
		}
		fmt.Fprintf(&text, `
CREATE OR REPLACE VIEW %s.%s DEFINER = CURRENT_USER SQL SECURITY DEFINER AS
SELECT *
FROM url(
    %s,
    Parquet,
    %s,
    headers('Authorization' = 'Bearer TOKEN'));
`, viewDatabase, t.Name, quoteSQL(url+"/v1/tables/"+t.Name+".parquet"), quoteSQL(strings.Join(columns, ", ")))
	}
	fmt.Fprintf(&text, `
CREATE USER IF NOT EXISTS %[1]s IDENTIFIED BY 'PASSWORD' SETTINGS readonly = 2;
GRANT SELECT ON %[2]s.* TO %[1]s;
`, viewUser, viewDatabase)
	return text.String()
}

// quoteSQL returns a literal of SQL.
func quoteSQL(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}

// clickHouseType returns the type of a column in ClickHouse.
func clickHouseType(of *Column) string {
	name := map[Type]string{
		Int64: "Int64", Double: "Float64", String: "String", Bool: "Bool", Timestamp: "DateTime64(3, 'UTC')",
		Date: "Date32",
	}[of.Type]
	if of.Null != "" {
		return "Nullable(" + name + ")"
	}
	return name
}
