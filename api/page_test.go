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
		if strings.Contains(page, other) {
			s.t.Errorf("%s has %q", path, other)
		}
	}
	check.Equal(s.t, regexp.MustCompile(`\son\w+=`).FindString(page), "", path)
	for _, script := range scriptPattern.FindAllStringSubmatch(page, -1) {
		check.Equal(s.t, script[1], "", path)
	}
	files := linkPattern.FindAllStringSubmatch(page, -1)
	if len(files) < 2 {
		s.t.Fatalf("%s loads %q, want a script and a style", path, files)
	}
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
	if got := response.Get("Content-Security-Policy"); !strings.Contains(got, "default-src 'none'; script-src 'self';") || strings.Contains(got, "http") {
		t.Errorf("the policy is %q", got)
	}
	style := s.wants(http.StatusOK, "GET", "/dashboard/app.css", "")
	if strings.Contains(style, "url(") || strings.Contains(style, "@import") {
		t.Error("the style loads another file")
	}
}

// TestPageIsSmall checks that all files of the page together compress to at most 200 KB.
func TestPageIsSmall(t *testing.T) {
	var packed bytes.Buffer
	for _, f := range dashboard.Files(dashboard.Results) {
		w := gzip.NewWriter(&packed)
		must.Get(w.Write(f.Body))(t)
		must.OK(t, w.Close())
	}
	if n := packed.Len(); n > 200_000 {
		t.Errorf("%d bytes, want 200,000 at most", n)
	}
}

// TestPageHasTextForEveryCode checks that the page has a text for each code of the API.
func TestPageHasTextForEveryCode(t *testing.T) {
	schemas := must.Get(theContract())(t).doc.Components.Schemas
	words := must.Get(os.ReadFile("dashboard/web/words.js"))(t)
	lists := must.Get(os.ReadFile("dashboard/web/list.jsx"))(t)
	reasons := slices.Sorted(maps.Keys(enumerated(schemas["Reason"])))
	if len(reasons) < 20 {
		t.Errorf("the API document has %d reasons", len(reasons))
	}
	for _, code := range append(reasons, "CAP_NOT_REACHED") {
		if wording.ExplainReason(stats.Reason(code)) == code {
			t.Errorf("the reason %s has no text", code)
		}
	}
	for _, where := range []struct{ schema, form, in string }{
		{"Metric", "  %s: \"", string(words)},
		{"CampaignType", "\"%s\"", string(lists)},
		{"WidgetType", "\"%s\"", string(lists)},
	} {
		codes := slices.Sorted(maps.Keys(enumerated(schemas[where.schema])))
		if len(codes) == 0 {
			t.Errorf("the API document has no values for %s", where.schema)
		}
		for _, code := range codes {
			if !strings.Contains(where.in, strings.Replace(where.form, "%s", code, 1)) {
				t.Errorf("the page has no text for %s, a %s", code, where.schema)
			}
		}
	}
}
