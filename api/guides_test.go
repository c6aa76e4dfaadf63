package api_test

import (
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

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
		response, _, text := s.do("GET", path, "")
		must.Equal(t, response.status, http.StatusOK, path)
		pages[path] = text
		policy := response.Get("Content-Security-Policy")
		check.That(t, strings.HasPrefix(policy,
			"default-src 'none'; style-src 'self';") && !strings.Contains(policy, "unsafe"), "%s: the policy is %q", path, policy)
		check.That(t, !regexp.MustCompile(`<script| style=| on\w+=`).MatchString(text), "%s has scripts or styles", path)
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
	s.wants(http.StatusNotFound, "GET", "/guides/nothing.md", "")
}
