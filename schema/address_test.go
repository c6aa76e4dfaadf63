package schema_test

import (
	"strings"
	"testing"

	"lifthouse/schema"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

func none(string) string { return "" }

func TestConcurrencyOfConnections(t *testing.T) {
	store := must.Get(schema.ParseAddress("clickhouse://u:p%40@a/db", none))(t)
	store.SetConcurrency(20)
	o := store.Options
	check.That(t, o.MaxOpenConns == 20+schema.SpareConns && o.MaxIdleConns == o.MaxOpenConns && o.Auth.Password == "p@",
		"connections = %d, %d, password %s", o.MaxOpenConns, o.MaxIdleConns, o.Auth.Password)
}

// TestCredentialsFromEnvironment checks the environment variables, which keep secrets out of lists of processes.
func TestCredentialsFromEnvironment(t *testing.T) {
	environment := map[string]string{"CLICKHOUSE_USER": "someone", "CLICKHOUSE_PASSWORD": "secret"}
	getenv := func(name string) string { return environment[name] }
	store, err := schema.ParseAddress("clickhouse://h/db", getenv)
	check.That(t, err == nil && store.Options.Auth.Username == "someone" && store.Options.Auth.Password == "secret", "auth = %+v, %v", store.Options.Auth, err)
	store, err = schema.ParseAddress("clickhouse://u:own@h/db", getenv)
	check.That(t, err == nil && store.Options.Auth.Username == "u" && store.Options.Auth.Password == "own", "auth = %+v, %v", store.Options.Auth, err)
	environment["CLICKHOUSE_PASSWORD"], environment["CLICKHOUSE_PASSWORD_FILE"] = "", "testdata/none"
	if _, err := schema.ParseAddress("clickhouse://h/db", getenv); err == nil || !strings.Contains(err.Error(), "CLICKHOUSE_PASSWORD_FILE: open testdata/none") {
		t.Errorf("error = %v", err)
	}
}
