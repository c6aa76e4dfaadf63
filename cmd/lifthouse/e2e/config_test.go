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

// TestAMisspeltVariableIsNamed checks a name that is nearly that of a setting. What settings are is in the scripts.
func TestAMisspeltVariableIsNamed(t *testing.T) {
	cmd := lifthouse(t, "check", "--store=embedded:"+filepath.Join(t.TempDir(), "none"))
	cmd.Env = append(cmd.Env, "LIFTHOUSE_RESLTS_AGE=1s")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "LIFTHOUSE_RESLTS_AGE is not a setting; did you mean LIFTHOUSE_RESULTS_AGE") {
		t.Errorf("%v\n%s", err, out)
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
		must.OK(t, err)
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
