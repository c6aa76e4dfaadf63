package api_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"maps"
	"net/http"
	"net/url"
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
	page := s.Get(path).Send().CheckStatus(http.StatusOK).Text
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
		s.Get(file[1]).Send().CheckStatus(http.StatusOK)
	}
}

func TestPagesLoadOnlyOwnFiles(t *testing.T) {
	s := newEmptyServer(t)
	for _, path := range []string{"/", "/docs"} {
		s.loadsOnlyOwnFiles(path)
	}
	response := s.Get("/docs").Send()
	got := response.Header.Get("Content-Security-Policy")
	check.Contains(t, got, "default-src 'none'; script-src 'self';", "the policy is %q", got)
	check.That(t, !strings.Contains(got, "http"), "the policy is %q", got)
	style := s.Get("/dashboard/app.css").Send().CheckStatus(http.StatusOK).Text
	check.That(t, !strings.Contains(style, "url("), "the style loads another file")
	check.That(t, !strings.Contains(style, "@import"), "the style loads another file")
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
			check.That(t, strings.Contains(where.in, strings.Replace(where.form, "%s", code, 1)),
				"the page has no text for %s, a %s", code, where.schema)
		}
	}
}

func TestTheDashboardIsServedWithItsPolicy(t *testing.T) {
	s := newEmptyServer(t)
	for _, f := range dashboard.Files(dashboard.Results) {
		path := "/dashboard/" + f.Name
		switch f.Name {
		case dashboard.Index:
			path = "/?campaign=12&filters[country][]=US"
		case dashboard.Readout:
			path = "/readouts/7f3a91c20b5d4e6f8a9b0c1d2e3f4a5b"
		}
		isPage := strings.HasSuffix(f.Name, ".html")
		response := s.Get(path).Send()
		check.Equal(t, response.Status, http.StatusOK, "%s", path)
		check.Equal(t, response.Text, string(f.Body), "%s", path)
		check.Equal(t, response.Header.Get("Content-Type"), f.Kind, "%s", path)
		robots := response.Header.Get("X-Robots-Tag")
		check.Equal(t, robots == "noindex", isPage, "%s: X-Robots-Tag %q", path, robots)
		const noIndex = `<meta name="robots" content="noindex">`
		if isPage {
			check.Contains(t, response.Text, noIndex, path)
		}
		policy := response.Header.Get("Content-Security-Policy")
		check.That(t, strings.HasPrefix(policy, "default-src 'none'; script-src 'self'; style-src 'self'"),
			"%s: the policy is %q", path, policy)
		mayStyle := f.Name == dashboard.Readout // in its frame
		check.Equal(t, strings.Contains(policy, "unsafe"), mayStyle, "%s: the policy is %q", path, policy)
		again := s.Get(path).Header("If-None-Match", response.Header.Get("ETag")).Send()
		check.Equal(t, again.Status, http.StatusNotModified, "%s with If-None-Match", path)
	}
	s.Get("/dashboard/nothing.js").Send().CheckStatus(http.StatusNotFound)
}

// TestTheScriptOfTheDashboardIsSmall bounds what every page loads, and what a view loads when it opens.
func TestTheScriptOfTheDashboardIsSmall(t *testing.T) {
	atFirst := 0
	for _, f := range dashboard.Files(dashboard.Results) {
		switch {
		case !strings.HasSuffix(f.Name, ".js"):
		case f.Name == "app.js" || f.Name == "chunk.js":
			atFirst += len(f.Body)
		default:
			most := map[string]int{"readout.js": 6_000}[f.Name]
			check.That(t, len(f.Body) <= cmp.Or(most, 20_000), "%s has %d bytes", f.Name, len(f.Body))
		}
	}
	check.That(t, atFirst <= 208_284, "every page loads %d bytes of script", atFirst)
}

func TestTheOpinionIsServedWithoutConnections(t *testing.T) {
	s := newEmptyServer(t)
	for _, f := range append(dashboard.Files(dashboard.Opinion), dashboard.Files(dashboard.OpinionParts)...) {
		response := s.Get(strings.TrimSuffix("/opinion/"+f.Name, "/"+dashboard.Index)).Send()
		check.Equal(t, response.Status, http.StatusOK, "%s", f.Name)
		check.Equal(t, response.Text, string(f.Body), "%s", f.Name)
		check.Equal(t, response.Header.Get("Content-Type"), f.Kind, "%s", f.Name)
		policy := response.Header.Get("Content-Security-Policy")
		check.That(t, strings.HasPrefix(policy, "default-src 'none'; script-src 'self' 'wasm-unsafe-eval';"),
			"%s: the policy is %q", f.Name, policy)
		check.That(t, !strings.Contains(policy, "connect-src"), "%s: the policy is %q", f.Name, policy)
	}
}

// TestGuidesAreServed checks that each guide is served, with a policy that forbids scripts and styles in the page, and
// that each of its links leads to a guide with this heading, to another page of the program, or to another host.
func TestGuidesAreServed(t *testing.T) {
	s := newEmptyServer(t)
	pages := map[string]string{}
	for _, file := range must.Get(os.ReadDir("../docs"))(t) {
		if !strings.HasSuffix(file.Name(), ".md") {
			continue
		}
		path := "/guides/" + file.Name()
		response := s.Get(path).Send().RequireStatus(http.StatusOK)
		pages[path] = response.Text
		policy := response.Header.Get("Content-Security-Policy")
		check.That(t, strings.HasPrefix(policy,
			"default-src 'none'; style-src 'self';"), "%s: the policy is %q", path, policy)
		check.That(t, !strings.Contains(policy, "unsafe"), "%s: the policy is %q", path, policy)
		check.Equal(t, regexp.MustCompile(`<script| style=| on\w+=`).FindString(response.Text), "", path)
	}
	links := 0
	for path, text := range pages {
		base := must.Get(url.Parse(path))(t)
		for _, found := range regexp.MustCompile(`(?:href|src)="([^"]*)"`).FindAllStringSubmatch(text, -1) {
			to := base.ResolveReference(must.Get(url.Parse(found[1]))(t))
			target, isGuide := pages[to.Path]
			switch {
			case to.Host != "" ||
				slices.Contains([]string{"/", "/docs", "/dashboard/app.css", "/dashboard/icon.svg"}, to.Path):
			case !isGuide:
				t.Errorf("%s links to %s, which is not served", path, found[1])
			case to.Fragment != "" && !strings.Contains(target, `id="`+to.Fragment+`"`):
				t.Errorf("%s links to %s, which has no such heading", path, found[1])
			default:
				links++
			}
		}
	}
	check.That(t, links >= len(pages)*len(pages), "%d links among %d guides", links, len(pages))
	check.Contains(t, pages["/guides/statistics.md"], "<table tabindex=\"0\">", "statistics.md")
	s.Get("/guides/nothing.md").Send().CheckStatus(http.StatusNotFound)
}
