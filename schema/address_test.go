package schema_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"lifthouse/schema"
	"lifthouse/schema/schematest/must"
)

func none(string) string { return "" }

func TestParseAddress(t *testing.T) {
	for _, test := range []struct{ address, dir, fault string }{
		{"embedded:./data", "./data", ""},
		{"embedded:", "", "the directory is missing"},
		{"./data", "", "must be embedded:DIR"},
		{"postgres://x/y", "", "must be embedded:DIR"},
		{"clickhous://u:secret@h/db", "", `store "clickhous://h/db": must be embedded:DIR`},
		{"clickhouse://u:a/secret@h/db", "", "store clickhouse://…: must be clickhouse://user:pass@host:port/db"},
		{"u:secret@h", "", `store "…": must be`},
		{"clickhouse://u:p@h:9000/db", "", ""},
		{"https://u:p@h:8443/db", "", ""},
	} {
		store, err := schema.ParseAddress(test.address, none)
		switch {
		case test.fault != "" && (err == nil || !strings.Contains(err.Error(), test.fault)):
			t.Errorf("ParseAddress(%q) error = %v, want %q", test.address, err, test.fault)
		case test.fault == "" && (err != nil || store.Dir != test.dir || (store.Options == nil) == (store.Dir == "")):
			t.Errorf("ParseAddress(%q) = %+v, %v", test.address, store, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("ParseAddress(%q) contains the password: %v", test.address, err)
		}
	}
}

func TestShowAddress(t *testing.T) {
	for address, want := range map[string]string{
		"embedded:./da@ta":                              "embedded:./da@ta",
		"clickhouse://u:secret@h:9000/db?password=x":    "clickhouse://h:9000/db",
		"https://secret@h/db#secret":                    "https://h/db",
		"http://h:8123/db?password=sec@ret&secure=true": "http://…",
		"clickhouse://u:sec@ret@h/db":                   "clickhouse://…",
		"clickhouse://u:123?secret@h/db":                "clickhouse://…",
		"clickhouse://u:%zz@h/db":                       "clickhouse://…",
		"./data":                                        "./data",
	} {
		if got := schema.ShowAddress(address); got != want {
			t.Errorf("ShowAddress(%q) = %q, want %q", address, got, want)
		}
	}
}

// TestParseAddressReportsAllErrors checks that all errors are reported together,
// each once.
func TestParseAddressReportsAllErrors(t *testing.T) {
	_, err := schema.ParseAddress("clickhouse://u:secret@h:99999,:9000/d'b?dial_timeout=soon&max_open_conns=0&secre=true&ca=x.pem&connection_open_strategy=or&cluster=a'b&read_timeout=5s&read_timeout=6s&password=", none)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`host "h:99999": the port must be from 1 to 65535`, `host ":9000": must be host:port`, `database "d'b": must be a name`, `dial_timeout="soon": must be a duration`,
		`max_open_conns="0": must be an integer of at least 1`, "secre: unknown parameter; did you mean secure?", "ca: requires TLS",
		`connection_open_strategy="or": must be in_order`, `cluster="a'b": must be a name`, "read_timeout: must be given once, is given 2 times", "password: must be a non-empty text",
	} {
		if strings.Count(err.Error(), want) != 1 {
			t.Errorf("lacks %q:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("the error contains the password: %v", err)
	}
	for address, want := range map[string]string{
		"http://h/db?secure=true":                   "contradicts http://",
		"clickhouses://h/db?secure=0":               "contradicts clickhouses://",
		"clickhouses://h/db?ca=testdata/none.pem":   "ca: open testdata/none.pem",
		"clickhouses://h/db?ca=testdata/schema.sql": "contains no PEM certificate",
		"https://h/db?cert=a.pem":                   "cert, key: must be given together",
		"https://h/db?cert=a.pem&key=b.pem":         "cert, key: open a.pem",
		"clickhouse://h/db?compress=fast":           `compress="fast": must be true`,
		"clickhouse://h/db?skip_verify=perhaps":     `skip_verify="perhaps": must be true or false`,
	} {
		if _, err := schema.ParseAddress(address, none); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseAddress(%q) = %v, want %q", address, err, want)
		}
	}
}

func TestParseServerAddress(t *testing.T) {
	store := must.Get(schema.ParseAddress("clickhouse://u:p%40@a,b:9001,[::1]/db?cluster=c&dial_timeout=1s&max_threads=3", none))(t)
	o := store.Options
	if got := strings.Join(o.Addr, " "); got != "a:9000 b:9001 [::1]:9000" {
		t.Errorf("hosts = %s", got)
	}
	if o.Auth.Username != "u" || o.Auth.Password != "p@" || o.Auth.Database != "db" || store.Cluster != "c" || o.DialTimeout != time.Second || o.TLS != nil {
		t.Errorf("store = %+v, %+v", store, o)
	}
	if len(o.Settings) != 1 || o.Settings["max_threads"] != 3 {
		t.Errorf("settings = %v", o.Settings)
	}
	store.SetConcurrency(20)
	if o.MaxOpenConns != 20+schema.SpareConns || o.MaxIdleConns != o.MaxOpenConns {
		t.Errorf("connections = %d, %d", o.MaxOpenConns, o.MaxIdleConns)
	}
	for address, want := range map[string]string{
		"clickhouses://h/db": "h:9440", "clickhouse://h/db?secure=true": "h:9440", "http://h/db": "h:8123", "https://h/db": "h:8443",
	} {
		store, err := schema.ParseAddress(address, none)
		if err != nil || store.Options.Addr[0] != want || (store.Options.TLS == nil) != (want == "h:8123") || (store.Options.Protocol == clickhouse.HTTP) != strings.HasPrefix(address, "http") {
			t.Errorf("ParseAddress(%q) = %+v, %v", address, store.Options, err)
		}
	}
}

// TestCredentialsFromEnvironment checks the environment variables, which keep
// secrets out of lists of processes.
func TestCredentialsFromEnvironment(t *testing.T) {
	environment := map[string]string{"CLICKHOUSE_USER": "someone", "CLICKHOUSE_PASSWORD": "secret"}
	getenv := func(name string) string { return environment[name] }
	store, err := schema.ParseAddress("clickhouse://h/db", getenv)
	if err != nil || store.Options.Auth.Username != "someone" || store.Options.Auth.Password != "secret" {
		t.Errorf("auth = %+v, %v", store.Options.Auth, err)
	}
	store, err = schema.ParseAddress("clickhouse://u:own@h/db", getenv)
	if err != nil || store.Options.Auth.Username != "u" || store.Options.Auth.Password != "own" {
		t.Errorf("auth = %+v, %v", store.Options.Auth, err)
	}
	environment["CLICKHOUSE_PASSWORD"], environment["CLICKHOUSE_PASSWORD_FILE"] = "", "testdata/none"
	if _, err := schema.ParseAddress("clickhouse://h/db", getenv); err == nil || !strings.Contains(err.Error(), "CLICKHOUSE_PASSWORD_FILE: open testdata/none") {
		t.Errorf("error = %v", err)
	}
}
