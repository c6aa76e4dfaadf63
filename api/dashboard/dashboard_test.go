package dashboard_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"regexp"
	"strings"
	"testing"

	"lifthouse/api/dashboard"

	"github.com/goccy/go-yaml"
)

func TestThePageLoadsOnlyItsOwnAndNothingInline(t *testing.T) {
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
	if found := regexp.MustCompile(`\son\w+=`).FindString(page); found != "" {
		t.Errorf("the page has %q", found)
	}
	for _, script := range regexp.MustCompile(`(?s)<script[^>]*>(.*?)</script>`).FindAllStringSubmatch(page, -1) {
		if script[1] != "" {
			t.Errorf("the page has a script of its own: %.60s", script[1])
		}
	}
	loads := regexp.MustCompile(`(?:src|href)="(/dashboard/)?([^"]+)"`).FindAllStringSubmatch(page, -1)
	if len(loads) < 3 {
		t.Fatalf("it loads %q, want a script, a style and an icon", loads)
	}
	for _, load := range loads {
		if _, there := files[load[2]]; !there && load[2] != "/docs" {
			t.Errorf("the page names %s, which is not there", load[0])
		}
	}
	if strings.Contains(files["app.css"], "url(") || strings.Contains(files["app.css"], "@import") {
		t.Error("the style loads something")
	}
}

// TestThePageIsSmall: the whole page compresses to less than 200 KB.
func TestThePageIsSmall(t *testing.T) {
	var packed bytes.Buffer
	for _, f := range dashboard.Files() {
		w := gzip.NewWriter(&packed)
		if _, err := w.Write(f.Body); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := packed.Len(); n > 200_000 {
		t.Errorf("%d bytes, want 200,000 at most", n)
	}
}

// TestThePageKnowsEveryReason: a code that the API may give has words on the
// page.
func TestThePageKnowsEveryReason(t *testing.T) {
	text, err := os.ReadFile("../openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
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
	words, err := os.ReadFile("src/words.js")
	if err != nil {
		t.Fatal(err)
	}
	lists, err := os.ReadFile("src/list.jsx")
	if err != nil {
		t.Fatal(err)
	}
	for _, where := range []struct{ schema, form, in string }{
		{"Reason", "  %s: \"", string(words)},
		{"Metric", "  %s: \"", string(words)},
		{"CampaignType", "\"%s\"", string(lists)},
		{"WidgetType", "\"%s\"", string(lists)},
	} {
		codes := document.Components.Schemas[where.schema].Enum
		if len(codes) == 0 {
			t.Errorf("the document lists nothing for %s", where.schema)
		}
		for _, code := range codes {
			if !strings.Contains(where.in, strings.Replace(where.form, "%s", code, 1)) {
				t.Errorf("the page has no words for %s, a %s", code, where.schema)
			}
		}
	}
}
