package api_test

import (
	"net/http"
	"strings"
	"testing"

	"lifthouse/api/dashboard"
	"lifthouse/schema/schematest/check"
)

func TestTheDashboardIsServedWithItsPolicy(t *testing.T) {
	s := newEmptyServer(t)
	for _, f := range dashboard.Files(dashboard.Results) {
		path := "/dashboard/" + f.Name
		if f.Name == dashboard.Index {
			path = "/?campaign=12&filters[country][]=US"
		}
		response, _, text := s.do("GET", path, "")
		check.That(t, response.status == http.StatusOK && text == string(f.Body) && response.Get("Content-Type") == f.Kind,
			"%s: %d %s, %d bytes; want the file", path, response.status, response.Get("Content-Type"), len(text))
		robots := response.Get("X-Robots-Tag")
		check.That(t, (robots == "noindex") == (f.Name == dashboard.Index) && (f.Name != dashboard.Index || strings.Contains(text, `<meta name="robots" content="noindex">`)),
			"%s: X-Robots-Tag %q", path, robots)
		policy := response.Get("Content-Security-Policy")
		check.That(t, strings.HasPrefix(policy, "default-src 'none'; script-src 'self'; style-src 'self';") && !strings.Contains(policy, "unsafe"),
			"%s: the policy is %q", path, policy)
		again, _, _ := s.with("GET", path, "", http.Header{"If-None-Match": {response.Get("ETag")}})
		check.Equal(t, again.status, http.StatusNotModified, "%s with If-None-Match", path)
	}
	s.wants(http.StatusNotFound, "GET", "/dashboard/nothing.js", "")
}

func TestTheAuditIsServedWithoutConnections(t *testing.T) {
	s := newEmptyServer(t)
	for _, f := range append(dashboard.Files(dashboard.Audit), dashboard.Files(dashboard.AuditParts)...) {
		response, _, text := s.do("GET", strings.TrimSuffix("/audit/"+f.Name, "/"+dashboard.Index), "")
		check.That(t, response.status == http.StatusOK && text == string(f.Body) && response.Get("Content-Type") == f.Kind,
			"%s: %d %s, %d bytes; want the file", f.Name, response.status, response.Get("Content-Type"), len(text))
		policy := response.Get("Content-Security-Policy")
		check.That(t, strings.HasPrefix(policy, "default-src 'none'; script-src 'self' 'wasm-unsafe-eval';") && !strings.Contains(policy, "connect-src"),
			"%s: the policy is %q", f.Name, policy)
	}
}
