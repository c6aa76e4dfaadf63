package dashboard_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"lifthouse/api/dashboard"
	"lifthouse/engine/result"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/stats"
)

// TestPageLoadsOnlyOwnFiles checks that the page has no inline script or style and
// loads only embedded files.
func TestPageLoadsOnlyOwnFiles(t *testing.T) {
	files := map[string]string{}
	for _, f := range dashboard.Files() {
		files[f.Name] = string(f.Body)
	}
	page := files[dashboard.Index]
	for _, inline := range []string{"<style", "style=", "javascript:"} {
		if strings.Contains(page, inline) {
			t.Errorf("the page has %q", inline)
		}
	}
	check.Equal(t, regexp.MustCompile(`\son\w+=`).FindString(page), "", "on the page")
	for _, script := range regexp.MustCompile(`(?s)<script[^>]*>(.*?)</script>`).FindAllStringSubmatch(page, -1) {
		check.Equal(t, script[1], "", "a script of its own")
	}
	loads := regexp.MustCompile(`(?:src|href)="(/dashboard/)?([^"]+)"`).FindAllStringSubmatch(page, -1)
	if len(loads) < 3 {
		t.Fatalf("the page loads %q, want a script, a style and an icon", loads)
	}
	for _, load := range loads {
		if _, there := files[load[2]]; !there && load[2] != "/docs" {
			t.Errorf("the page loads %s, which does not exist", load[0])
		}
	}
	if strings.Contains(files["app.css"], "url(") || strings.Contains(files["app.css"], "@import") {
		t.Error("the style loads another file")
	}
}

// TestPageIsSmall checks that all files of the page together compress to at most
// 200 KB.
func TestPageIsSmall(t *testing.T) {
	var packed bytes.Buffer
	for _, f := range dashboard.Files() {
		w := gzip.NewWriter(&packed)
		must.Get(w.Write(f.Body))(t)
		must.OK(t, w.Close())
	}
	if n := packed.Len(); n > 200_000 {
		t.Errorf("%d bytes, want 200,000 at most", n)
	}
}

// TestPageHasTextForEveryCode checks that the page has a text for each code of
// the API.
func TestPageHasTextForEveryCode(t *testing.T) {
	text := must.Get(os.ReadFile("../docs/openapi.yaml"))(t)
	var document struct {
		Components struct {
			Schemas map[string]struct {
				Enum []string `yaml:"enum"`
			} `yaml:"schemas"`
		} `yaml:"components"`
	}
	if err := yaml.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	words, err := os.ReadFile("web/words.js")
	if err != nil {
		t.Fatal(err)
	}
	lists, err := os.ReadFile("web/list.jsx")
	if err != nil {
		t.Fatal(err)
	}
	reasons := regexp.MustCompile(`reason: \{type: string, enum: \[(CAP_NOT_REACHED)\]`).FindStringSubmatch(string(text))
	for _, code := range append(reasons[1:], document.Components.Schemas["Reason"].Enum...) {
		if result.ExplainReason(stats.Reason(code)) == code {
			t.Errorf("there is no text for the reason %s", code)
		}
	}
	if n := len(document.Components.Schemas["Reason"].Enum); n < 20 {
		t.Errorf("the API document has %d reasons", n)
	}
	for _, where := range []struct{ schema, form, in string }{
		{"Metric", "  %s: \"", string(words)},
		{"CampaignType", "\"%s\"", string(lists)},
		{"WidgetType", "\"%s\"", string(lists)},
	} {
		codes := document.Components.Schemas[where.schema].Enum
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

// TestReasonTextsMatchEngine checks that the page explains reasons with the same
// texts as the engine.
func TestReasonTextsMatchEngine(t *testing.T) {
	words := must.Get(os.ReadFile("web/words.js"))(t)
	compared := 0
	for _, line := range regexp.MustCompile(`(?m)^  ([A-Z_0-9]+): "(.*)",$`).FindAllStringSubmatch(string(words), -1) {
		want := result.ExplainReason(stats.Reason(line[1]))
		if want == line[1] {
			continue // the engine has no text for this code
		}
		compared++
		check.Equal(t, line[2], want, "%s on the page", line[1])
	}
	if compared < 18 {
		t.Errorf("compared %d texts, want at least 18", compared)
	}
}

// TestFormats runs the tests of the page's sources. Some compare the formats of
// numbers with those of the engine. It is skipped without Node.js.
func TestFormats(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	files, err := filepath.Glob("web/*.test.js")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in web: %v", err)
	}
	tests := exec.CommandContext(t.Context(), node, append([]string{"--test"}, files...)...)
	if out, err := tests.CombinedOutput(); err != nil {
		t.Errorf("node --test: %v\n%s", err, out)
	}
}
