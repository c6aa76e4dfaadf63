package api_test

import (
	"bytes"
	"compress/gzip"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"lifthouse/api/dashboard"
	"lifthouse/engine/wording"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/stats"
)

var (
	scriptPattern = regexp.MustCompile(`(?s)<script[^>]*>(.*?)</script>`)
	linkPattern   = regexp.MustCompile(`(?:src|href)="(/[^"]*)"`)
)

// loadsOnlyOwnFiles checks that a page has no inline script or style, and that it loads only files of the server.
func (s *server) loadsOnlyOwnFiles(path string) {
	s.t.Helper()
	page := s.wants(http.StatusOK, "GET", path, "")
	for _, other := range []string{"<style", "style=", "javascript:", "http://", "https://"} {
		check.That(s.t, !strings.Contains(page, other), "%s has %q", path, other)
	}
	check.Equal(s.t, regexp.MustCompile(`\son\w+=`).FindString(page), "", path)
	for _, script := range scriptPattern.FindAllStringSubmatch(page, -1) {
		check.Equal(s.t, script[1], "", path)
	}
	files := linkPattern.FindAllStringSubmatch(page, -1)
	must.That(s.t, len(files) >= 2, "%s loads %q, want a script and a style", path, files)
	for _, file := range files {
		s.wants(http.StatusOK, "GET", file[1], "")
	}
}

func TestPagesLoadOnlyOwnFiles(t *testing.T) {
	s := newEmptyServer(t)
	for _, path := range []string{"/", "/docs"} {
		s.loadsOnlyOwnFiles(path)
	}
	response, _, _ := s.do("GET", "/docs", "")
	got := response.Get("Content-Security-Policy")
	check.That(t, strings.Contains(got, "default-src 'none'; script-src 'self';") && !strings.Contains(got, "http"), "the policy is %q", got)
	style := s.wants(http.StatusOK, "GET", "/dashboard/app.css", "")
	check.That(t, !strings.Contains(style, "url(") && !strings.Contains(style, "@import"), "the style loads another file")
}

// TestPageIsSmall checks that all files of the page together compress to at most 200 KB.
func TestPageIsSmall(t *testing.T) {
	var packed bytes.Buffer
	for _, f := range dashboard.Files(dashboard.Results) {
		w := gzip.NewWriter(&packed)
		must.Get(w.Write(f.Body))(t)
		must.OK(t, w.Close())
	}
	n := packed.Len()
	check.That(t, n <= 200_000, "%d bytes, want 200,000 at most", n)
}

// TestPageHasTextForEveryCode checks that the page has a text for each code of the API.
func TestPageHasTextForEveryCode(t *testing.T) {
	schemas := must.Get(theContract())(t).doc.Components.Schemas
	words := must.Get(os.ReadFile("dashboard/web/words.js"))(t)
	lists := must.Get(os.ReadFile("dashboard/web/list.jsx"))(t)
	reasons := slices.Sorted(maps.Keys(enumerated(schemas["Reason"])))
	check.That(t, len(reasons) >= 20, "the API document has %d reasons", len(reasons))
	for _, code := range append(reasons, "CAP_NOT_REACHED") {
		check.That(t, wording.ExplainReason(stats.Reason(code)) != code, "the reason %s has no text", code)
	}
	for _, where := range []struct{ schema, form, in string }{
		{"Metric", "  %s: \"", string(words)},
		{"CampaignType", "\"%s\"", string(lists)},
		{"WidgetType", "\"%s\"", string(lists)},
	} {
		codes := slices.Sorted(maps.Keys(enumerated(schemas[where.schema])))
		check.That(t, len(codes) != 0, "the API document has no values for %s", where.schema)
		for _, code := range codes {
			check.That(t, strings.Contains(where.in, strings.Replace(where.form, "%s", code, 1)), "the page has no text for %s, a %s", code, where.schema)
		}
	}
}
