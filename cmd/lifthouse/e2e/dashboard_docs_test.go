package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"lifthouse/schema/schematest/tier"
)

// visible returns the operations that the page of the API shows.
const visible = `[...document.querySelectorAll("main .operation")].filter((e) => e.checkVisibility()).map((e) => e.id)`

// TestTheDocsPageForEverybody looks at the page of the API: in both themes, in
// several widths, and with a search.
func TestTheDocsPageForEverybody(t *testing.T) {
	v := newViewer(t)
	v.open("/docs")
	v.shows("Get a campaign's results")
	v.docsFit("docs")
	v.sized(1440, 900)
	v.enter("#search", "cap")
	v.until(`document.querySelector("#found").textContent`)
	v.docsFit("docs-search")
	if len(v.problems) > 0 {
		t.Errorf("the browser complains: %q", v.problems)
	}
	for _, request := range v.requests() {
		if !strings.HasPrefix(request.URL, v.site) {
			t.Errorf("the page loads %s", request.URL)
		}
	}
}

// docsFit is look with the widths of the page of the API. It checks that no
// part is wider than the page, and that axe finds nothing.
func (v *viewer) docsFit(name string) {
	v.Helper()
	axe, err := os.ReadFile("../../../node_modules/axe-core/axe.min.js")
	if err != nil {
		v.Fatal(err)
	}
	for _, theme := range []string{"light", "dark"} {
		v.themed(theme)
		for _, width := range []int64{390, 700, 1440} {
			v.sized(width, 900)
			evaluated[bool](v, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
			for _, open := range []bool{false, true} {
				for _, wide := range evaluated[[]string](v, fmt.Sprintf(`(() => {
					const folded = %t ? [...document.querySelectorAll("main details:not([open])")] : [];
					for (const part of folded) part.open = true;
					const wide = [...document.querySelectorAll("body *")].filter((e) => e.offsetHeight > 0 && !e.closest("pre, .skip, thead") && e.getBoundingClientRect().right > %d)
						.slice(0, 5).map((e) => e.closest("section")?.id + " " + e.tagName + " " + e.textContent.slice(0, 60))
						.concat(document.documentElement.scrollWidth > %[2]d ? ["the page"] : []);
					for (const part of folded) part.open = false;
					return wide;
				})()`, open, width)) {
					v.Errorf("%s at %d px (unfolded: %t): too wide: %s", name, width, open, wide)
				}
			}
			evaluated[bool](v, string(axe)+`; true`)
			for _, finding := range evaluated[[]string](v, `axe.run().then((r) => r.passes.length < 10 ? ["it looked at nothing"] : r.violations.map((f) => f.id + ": " + f.help + " " + f.nodes.slice(0, 3).map((n) => n.target.join(" ") + " " + n.failureSummary).join("; ")))`) {
				v.Errorf("%s, %s, %d px: %s", name, theme, width, finding)
			}
			v.picture(fmt.Sprintf("%s-%s-%d", name, theme, width))
		}
	}
}

// TestTheDocsPageIsSearched searches the page, follows the menu and a link to a
// hidden section, and uses the keyboard.
func TestTheDocsPageIsSearched(t *testing.T) {
	v := newViewer(t)
	v.open("/docs")
	v.until(`!document.querySelector("[role=search]").hidden`)
	everything := evaluated[[]string](v, visible)
	v.do(chromedp.KeyEvent("/"))
	v.until(`document.activeElement.id === "search"`)
	v.choose("#search", "") // the protocol types the character in spite of the script
	v.enter("#search", "cap")
	v.until(`document.querySelector("#found").textContent`)
	shown := evaluated[[]string](v, visible)
	for _, want := range []string{"campaignResults", "widgetResults", "experimentResults"} {
		if !slices.Contains(shown, want) {
			t.Errorf("the search for cap shows %q, want %s in it", shown, want)
		}
	}
	if slices.Contains(shown, "listTargets") || len(shown) >= len(everything) {
		t.Errorf("the search for cap shows %q", shown)
	}
	names := evaluated[[]string](v, `[...document.querySelectorAll("#campaignResults .hit > tr:first-child > th > code")].filter((e) => e.checkVisibility()).map((e) => e.textContent)`)
	for _, want := range []string{"cap", "uncapped"} {
		if !slices.Contains(names, want) {
			t.Errorf("the search shows the parameters and fields %q, want %s in them", names, want)
		}
	}
	menu := evaluated[[]string](v, `[...document.querySelectorAll("nav li a")].filter((e) => e.checkVisibility()).map((e) => e.hash.slice(1))`)
	if !slices.Contains(menu, "campaignResults") || slices.Contains(menu, "listTargets") {
		t.Errorf("the menu has %q", menu)
	}
	v.do(chromedp.KeyEvent("\u001b"))
	v.until(fmt.Sprintf(visible+".length === %d", len(everything)))
	if n := evaluated[int64](v, `document.querySelectorAll("main details.part[open] table").length`); n > 0 {
		t.Errorf("%d parts remain open after the search", n)
	}

	v.click(`nav a[href="#getGoal"]`)
	v.until(`location.hash === "#getGoal" && Math.abs(document.querySelector("#getGoal").getBoundingClientRect().top) < 120`)
	v.enter("#search", "chanceToBeatControl")
	v.until(`document.querySelector("#listGoals").hidden`)
	v.click(`#campaignResults h3 a`)
	v.until(`location.hash === "#campaignResults"`)
	evaluated[bool](v, `(() => { document.querySelector('main a[href="#schema-Interval"]').click(); return true; })()`)
	v.until(`document.querySelector("#schema-Interval").checkVisibility() && !document.querySelector("#search").value`)

	v.sized(390, 800)
	v.open("/docs")
	v.until(`document.documentElement.matches(".scripted")`)
	if evaluated[bool](v, `document.querySelector("nav").checkVisibility()`) {
		t.Error("the menu is open on a narrow page")
	}
	v.click(".menu summary")
	v.click(`nav a[href="#listGoals"]`)
	v.until(`location.hash === "#listGoals" && !document.querySelector("nav").checkVisibility()`)
}

// TestTheDocsPageWithoutAScript checks that the page is complete without
// JavaScript.
func TestTheDocsPageWithoutAScript(t *testing.T) {
	v := newViewer(t)
	call(v, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	v.open("/docs#getGoal")
	v.picture("docs-unscripted")
	if evaluated[bool](v, `document.documentElement.matches(".scripted") || !document.querySelector("[role=search]").hidden`) {
		t.Error("the script has run")
	}
	if got := evaluated[[]string](v, visible); len(got) < 30 {
		t.Errorf("the page shows %q", got)
	}
	if !evaluated[bool](v, `document.querySelector("nav").checkVisibility() && document.querySelector(".unscripted").checkVisibility()`) {
		t.Error("the menu or the note about the address is hidden")
	}
}

// TestTheDocsPagesCommandIsPasted runs the command that the copy button copies.
func TestTheDocsPagesCommandIsPasted(t *testing.T) {
	tier.OnlyLong(t)
	v := newViewer(t)
	v.open("/docs#campaignResults")
	v.until(`document.querySelector("#campaignResults .copy")`)
	evaluated[bool](v, `(() => { navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }; return true; })()`)
	v.click("#campaignResults .copy")
	v.until(`document.querySelector("#campaignResults .copy").textContent === "Copied"`)
	command := evaluated[string](v, `window.copied`)
	if !strings.Contains(command, "'"+v.site+"/v1/campaigns/12/results'") {
		t.Errorf("the command is %s", command)
	}
	bash := exec.CommandContext(t.Context(), "bash", "-c", command) //nolint:gosec // of our page
	bash.Env = append(os.Environ(), "LIFTHOUSE_TOKEN="+v.token)
	out, err := bash.Output()
	var results struct {
		CampaignID int64 `json:"campaignId"`
		Variations []any `json:"variations"`
	}
	if err != nil || json.Unmarshal(out, &results) != nil || results.CampaignID != 12 || len(results.Variations) < 2 {
		t.Errorf("%s\n%v: %.500s", command, err, out)
	}
}
