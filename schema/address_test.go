package schema_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"lifthouse/schema"
)

func none(string) string { return "" }

func TestParseHome(t *testing.T) {
	for _, test := range []struct{ address, dir, fault string }{
		{"embedded:./data", "./data", ""},
		{"embedded:", "", "the directory is missing"},
		{"./data", "", "want embedded:DIR"},
		{"postgres://x/y", "", "want embedded:DIR"},
		{"clickhous://u:secret@h/db", "", `store "clickhous://h/db": want embedded:DIR`},
		{"clickhouse://u:a/secret@h/db", "", "store clickhouse://…: want clickhouse://user:pass@host:port/db"},
		{"u:secret@h", "", `store "…": want`},
		{"clickhouse://u:p@h:9000/db", "", ""},
		{"https://u:p@h:8443/db", "", ""},
	} {
		home, err := schema.ParseAddress(test.address, none)
		switch {
		case test.fault != "" && (err == nil || !strings.Contains(err.Error(), test.fault)):
			t.Errorf("ParseHome(%q) error = %v, want %q", test.address, err, test.fault)
		case test.fault == "" && (err != nil || home.Dir != test.dir || (home.Options == nil) == (home.Dir == "")):
			t.Errorf("ParseHome(%q) = %+v, %v", test.address, home, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("ParseHome(%q) tells the password: %v", test.address, err)
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

// TestAddressesSayAllTheirFaults has people correct an address once.
func TestAddressesSayAllTheirFaults(t *testing.T) {
	_, err := schema.ParseAddress("clickhouse://u:secret@h:99999,:9000/d'b?dial_timeout=soon&max_open_conns=0&secre=true&ca=x.pem&connection_open_strategy=or&cluster=a'b&read_timeout=5s&read_timeout=6s&password=", none)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`host "h:99999": want a port from 1 to 65535`, `host ":9000": want host:port`, `database "d'b": want a name`, `dial_timeout="soon": want a duration`,
		`max_open_conns="0": want a whole number from 1`, "secre: unknown; the nearest is secure", "ca: is for TLS only",
		`connection_open_strategy="or": want in_order`, `cluster="a'b": want a name`, "read_timeout: is there 2 times", "password: want text",
	} {
		if strings.Count(err.Error(), want) != 1 {
			t.Errorf("lacks %q:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("tells the password: %v", err)
	}
	for address, want := range map[string]string{
		"http://h/db?secure=true":                   "http:// says otherwise",
		"clickhouses://h/db?secure=0":               "clickhouses:// says otherwise",
		"clickhouses://h/db?ca=testdata/none.pem":   "ca: open testdata/none.pem",
		"clickhouses://h/db?ca=testdata/schema.sql": "has no certificate in PEM",
		"https://h/db?cert=a.pem":                   "cert, key: want both",
		"https://h/db?cert=a.pem&key=b.pem":         "cert, key: open a.pem",
		"clickhouse://h/db?compress=fast":           `compress="fast": want true`,
		"clickhouse://h/db?skip_verify=perhaps":     `skip_verify="perhaps": want true or false`,
	} {
		if _, err := schema.ParseAddress(address, none); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseHome(%q) = %v, want %q", address, err, want)
		}
	}
}

func TestAddressesOfServers(t *testing.T) {
	home, err := schema.ParseAddress("clickhouse://u:p%40@a,b:9001,[::1]/db?cluster=c&dial_timeout=1s&max_threads=3", none)
	if err != nil {
		t.Fatal(err)
	}
	o := home.Options
	if got := strings.Join(o.Addr, " "); got != "a:9000 b:9001 [::1]:9000" {
		t.Errorf("hosts = %s", got)
	}
	if o.Auth.Username != "u" || o.Auth.Password != "p@" || o.Auth.Database != "db" || home.Cluster != "c" || o.DialTimeout != time.Second || o.TLS != nil {
		t.Errorf("home = %+v, %+v", home, o)
	}
	if len(o.Settings) != 1 || o.Settings["max_threads"] != 3 {
		t.Errorf("settings = %v", o.Settings)
	}
	home.Concurrent(20)
	if o.MaxOpenConns != 20+schema.SpareConns || o.MaxIdleConns != o.MaxOpenConns {
		t.Errorf("connections = %d, %d", o.MaxOpenConns, o.MaxIdleConns)
	}
	for address, want := range map[string]string{
		"clickhouses://h/db": "h:9440", "clickhouse://h/db?secure=true": "h:9440", "http://h/db": "h:8123", "https://h/db": "h:8443",
	} {
		home, err := schema.ParseAddress(address, none)
		if err != nil || home.Options.Addr[0] != want || (home.Options.TLS == nil) != (want == "h:8123") || (home.Options.Protocol == clickhouse.HTTP) != strings.HasPrefix(address, "http") {
			t.Errorf("ParseHome(%q) = %+v, %v", address, home.Options, err)
		}
	}
}

// TestTheEnvironmentKeepsSecrets that an address would show in a list of
// processes.
func TestTheEnvironmentKeepsSecrets(t *testing.T) {
	environment := map[string]string{"CLICKHOUSE_USER": "someone", "CLICKHOUSE_PASSWORD": "secret"}
	getenv := func(name string) string { return environment[name] }
	home, err := schema.ParseAddress("clickhouse://h/db", getenv)
	if err != nil || home.Options.Auth.Username != "someone" || home.Options.Auth.Password != "secret" {
		t.Errorf("auth = %+v, %v", home.Options.Auth, err)
	}
	home, err = schema.ParseAddress("clickhouse://u:own@h/db", getenv)
	if err != nil || home.Options.Auth.Username != "u" || home.Options.Auth.Password != "own" {
		t.Errorf("auth = %+v, %v", home.Options.Auth, err)
	}
	environment["CLICKHOUSE_PASSWORD"], environment["CLICKHOUSE_PASSWORD_FILE"] = "", "testdata/none"
	if _, err := schema.ParseAddress("clickhouse://h/db", getenv); err == nil || !strings.Contains(err.Error(), "CLICKHOUSE_PASSWORD_FILE: open testdata/none") {
		t.Errorf("error = %v", err)
	}
}
