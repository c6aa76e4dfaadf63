package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must.OK(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// withEnv runs a command with environment variables.
func withEnv(t *testing.T, env []string, args ...string) (code int, text string) {
	t.Helper()
	cmd := lifthouse(t, args...)
	cmd.Env = append(cmd.Env, env...)
	out, _ := cmd.CombinedOutput()
	return cmd.ProcessState.ExitCode(), string(out)
}

func TestSettingsComeFromFlagEnvironmentAndFile(t *testing.T) {
	config := file(t, "lifthouse.yaml", `
listen: 127.0.0.1:1111
query-timeout: 30s
results-age: 5s
store-queue: 7
rate-limit: 2.5
cors-origin: [https://a.example.com, https://b.example.com]
`)
	env := []string{
		"LIFTHOUSE_CONFIG=" + config, "LIFTHOUSE_LISTEN=127.0.0.1:2222", "LIFTHOUSE_QUERY_TIMEOUT=40s", "LIFTHOUSE_RESLTS_AGE=1s",
		"LIFTHOUSE_STORE=embedded:" + filepath.Join(t.TempDir(), "none"),
	}
	code, out := withEnv(t, env, "check", "--listen", "127.0.0.1:3333")
	if code != exitOK {
		t.Fatalf("exit %d\n%s", code, out)
	}
	for _, want := range []string{
		`listen +127.0.0.1:3333 +\(flag\)`, `query-timeout +40s +\(environment\)`, `results-age +5s +\(file\)`, `store-queue +7 +\(file\)`,
		`rate-limit +2.5 +\(file\)`, `cors-origin +\[https://a.example.com,https://b.example.com\] +\(file\)`, `idle-timeout +2m0s +\(default\)`,
		`LIFTHOUSE_RESLTS_AGE is not a setting; did you mean LIFTHOUSE_RESULTS_AGE`, `store +note +.* does not exist yet`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("lacks %s:\n%s", want, out)
		}
	}
}

func TestAWrongConfigurationIsRefusedWithAllItsFaults(t *testing.T) {
	t.Parallel()
	config := file(t, "lifthouse.yaml", "lisen: x\nlog-level: loud\nquery-timeout: soon\nstore-queue: [1, 2]\nresults-age:\n")
	code, out := withEnv(t, []string{"LIFTHOUSE_QUERY_MEMORY=much", "LIFTHOUSE_LISTEN=here"}, "serve", "--config", config)
	if code != exitUsage {
		t.Errorf("exit %d", code)
	}
	for _, want := range []string{
		"lisen: unknown setting; did you mean listen?", `query-timeout "soon": must be a duration such as 60s`, "store-queue: must be one value",
		"results-age: must be one value", `LIFTHOUSE_QUERY_MEMORY "much": must be an integer`,
		`log-level "loud": must be debug`, `listen "here": must be host:port`,
	} {
		if strings.Count(out, want) != 1 {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
	config = file(t, "lifthouse.yaml", "listen: here\nlog-format: xml\nlog-level: loud\ntls-cert: x.pem\ncors-origin: [example.com]\nrate-limit: -1\nquery-memory: -1\nidle-timeout: -1s\nadmin-address: 8081\n")
	code, out = withEnv(t, nil, "token", "list", "--config", config)
	for _, want := range []string{`listen "here"`, `log-format "xml"`, `log-level "loud"`, "tls-cert, tls-key", `cors-origin "example.com"`, `rate-limit "-1"`, `query-memory "-1"`, `idle-timeout "-1s"`, `admin-address "8081"`} {
		if code != exitUsage || !strings.Contains(out, want) {
			t.Errorf("exit %d, lacks %q:\n%s", code, want, out)
		}
	}
	for text, want := range map[string]string{"- a\n": "must have lines of the form name: value", "rate-limit: .inf\n": `rate-limit ".inf": must be a number from 0`, "listen: a:1\nlisten: b:2\n": "listen: given twice", "a: 1\n---\nb: 2\n": "in one document", "a: [\n": "line 2"} {
		if code, out := withEnv(t, nil, "serve", "--config", file(t, "c.yaml", text)); code != exitUsage || !strings.Contains(out, want) {
			t.Errorf("%q: exit %d\n%s", text, code, out)
		}
	}
	if code, out := withEnv(t, nil, "serve", "--config", "absent.yaml"); code != exitUsage || !strings.Contains(out, "absent.yaml") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

func TestCheckSaysWhatIsWrong(t *testing.T) {
	tier.OnlyLong(t)
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	store := "--store=embedded:" + dir
	check := func(code int, wants []string, args ...string) {
		t.Helper()
		got, out, complaints := other(t, nil, append([]string{"check"}, args...)...)
		for _, want := range wants {
			if got != code || !regexp.MustCompile(want).MatchString(out+complaints) {
				t.Errorf("check %q: exit %d, want %d and %s:\n%s%s", args, got, code, want, out, complaints)
			}
		}
	}
	check(exitOK, []string{"data does not exist yet"}, store)
	if _, err := os.Stat(dir); err == nil {
		t.Error("check made the store")
	}
	if code, _, complaints := other(t, nil, "migrate", store); code != exitOK {
		t.Fatal(complaints)
	}
	check(exitOK, []string{"store +ok", "schema +ok", "catalogue +note +is empty"}, store)
	if code, _, complaints := other(t, nil, "apply", "-f", "../testdata/thirty.catalog.yaml", store); code != exitOK {
		t.Fatal(complaints)
	}
	check(exitOK, []string{`catalogue +ok +account 1 .*campaigns 1`, "token create --account 1"}, store)
	check(exitFailed, []string{"store +WRONG", "clickhouse://127.0.0.1:1/db"}, "--store=clickhouse://user:secret@127.0.0.1:1/db")
	if _, out, complaints := other(t, nil, "check", "--store=clickhouse://user:secret@127.0.0.1:1/db"); strings.Contains(out+complaints, "secret") {
		t.Errorf("the password is shown:\n%s%s", out, complaints)
	}
	check(exitUsage, []string{"must be embedded:DIR"}, "--store=postgres://x")
	check(exitFailed, []string{"server +WRONG .*absent.pem", "schema +ok"}, store, "--tls-cert=absent.pem", "--tls-key=absent.pem")
	check(exitOK, []string{"server +note +listen 0.0.0.0:8080 can be reached from other machines without TLS", "admin-address :8081 can be reached"}, store, "--listen=0.0.0.0:8080", "--admin-address=:8081")

	p := start(t, "serve", store)
	check(exitOK, []string{"listen +127", "store +ok", "schema +ok", "catalogue +ok +account 1"}, store)
	p.interrupt()
}

func TestServeWithTLSAndAnAdminAddress(t *testing.T) {
	t.Parallel()
	cert, key, certificate := schematest.WriteCertificate(t)
	pool := x509.NewCertPool()
	pool.AddCert(certificate)
	p := start(t, "serve", "--store=embedded:"+filepath.Join(t.TempDir(), "data"), "--tls-cert="+cert, "--tls-key="+key, "--admin-address=127.0.0.1:0", "--log-format=json")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	defer client.CloseIdleConnections()
	get := func(url string) int {
		t.Helper()
		status, _, err := send(t.Context(), client, http.MethodGet, url, "", "")
		if err != nil {
			t.Fatal(err)
		}
		return status
	}
	if !strings.HasPrefix(p.url, "https://") || get(p.url+"/readyz") != http.StatusOK {
		t.Errorf("%s is not ready", p.url)
	}
	found := regexp.MustCompile(`"url":"(http://[^"]+/metrics)"`).FindStringSubmatch(p.log.String())
	if found == nil || get(found[1]) != http.StatusOK || get(strings.Replace(found[1], "metrics", "debug/pprof/", 1)) != http.StatusOK {
		t.Errorf("metrics: %q", found)
	}
	if log := p.log.String(); !strings.Contains(log, `"msg":"configuration"`) || !strings.Contains(log, `"route":"/readyz"`) {
		t.Error("the log lacks the configuration or the request")
	}
	client.CloseIdleConnections()
	p.interrupt()
}
