package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestAMisspeltVariableIsNamed checks a name that is nearly that of a setting. What settings are is in the scripts.
func TestAMisspeltVariableIsNamed(t *testing.T) {
	cmd := lifthouse(t, "check", "--store=embedded:"+filepath.Join(t.TempDir(), "none"))
	cmd.Env = append(cmd.Env, "LIFTHOUSE_RESLTS_AGE=1s")
	out, err := cmd.CombinedOutput()
	check.That(t, err == nil && strings.Contains(string(out), "LIFTHOUSE_RESLTS_AGE is not a setting; did you mean LIFTHOUSE_RESULTS_AGE"), "%v\n%s", err, out)
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
	check.That(t, strings.HasPrefix(p.url, "https://") && get(p.url+"/readyz") == http.StatusOK, "%s is not ready", p.url)
	found := regexp.MustCompile(`"url":"(http://[^"]+/metrics)"`).FindStringSubmatch(p.log.String())
	check.That(t, found != nil && get(found[1]) == http.StatusOK && get(strings.Replace(found[1], "metrics", "debug/pprof/", 1)) == http.StatusOK, "metrics: %q", found)
	if log := p.log.String(); !strings.Contains(log, `"msg":"configuration"`) || !strings.Contains(log, `"route":"/readyz"`) {
		t.Error("the log lacks the configuration or the request")
	}
	client.CloseIdleConnections()
	p.interrupt()
}
