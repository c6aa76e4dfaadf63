package e2e

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// measureStory measures a page: its height, its visible question marks, its headings of the first level, and the lifts
// and intervals that the first screen prints more than once. The labels of axes are drawings and do not count.
//
//go:embed testdata/story.js
var measureStory string

// story is what measureStory returns.
type story struct {
	Height, Marks, Headings, Facts int
	Repeated                       []string
}

// TestTheDashboardTellsOneStory bounds the height and the question marks of a campaign, and checks that its first
// screen prints no lift and no interval twice.
func TestTheDashboardTellsOneStory(t *testing.T) {
	v := newSignedIn(t, "/?campaign=12")
	for _, screen := range []struct {
		width, height int64
		highest       int
	}{{1440, 900, 2150}, {1024, 900, 4000}, {390, 844, 4250}} {
		v.sized(screen.width, screen.height)
		for _, campaign := range []int{12, 13, 14, 15, 16, 17, 18} {
			v.openAll(fmt.Sprintf("/?campaign=%d", campaign))
			measured := evaluated[story](v, measureStory)
			t.Logf("campaign %d at %d px: %+v", campaign, screen.width, measured)
			check.That(t, campaign != 12 || measured.Height <= screen.highest,
				"at %d px, the page is %d px high, want at most %d", screen.width, measured.Height, screen.highest)
			check.That(t, measured.Marks <= 12, "campaign %d at %d px has %d question marks, %d headings of the first level and repeats %q", campaign, screen.width, measured.Marks, measured.Headings, measured.Repeated)
			check.Equal(t, len(measured.Repeated), 0, "campaign %d at %d px has %d question marks, %d headings of the first level and repeats %q", campaign, screen.width, measured.Marks, measured.Headings, measured.Repeated)
			check.Equal(t, measured.Headings, 1, "campaign %d at %d px has %d question marks, %d headings of the first level and repeats %q", campaign, screen.width, measured.Marks, measured.Headings, measured.Repeated)
		}
	}

	// A pause stops the refreshes, and its end repeats them.
	v.click("#pause")
	v.shows("refreshes are paused")
	v.click("#pause")
	v.shows("refreshes every 5 s")

	// The numbers behind the answer are one click away.
	v.click("#evidence summary")
	v.until(`document.querySelector("#decided").checkVisibility()`)
	check.Equal(t, evaluated[string](v, `document.querySelector(".conclusion [role=status]").textContent`),
		evaluated[string](v, `document.querySelector("#decision").textContent.replaceAll(" ", " ")`), "announced text")
}

// TestTheBellShowsWhatHappened stops a campaign on the page. The bell counts the message, lists it with its author, and
// leads to the campaign.
func TestTheBellShowsWhatHappened(t *testing.T) {
	v := newViewer(t)
	v.open("/?campaign=12")
	v.signIn(v.token)
	v.shows("Free delivery banner")
	v.click("#switch")
	v.shows("Stop “Free delivery banner”?")
	v.click("#confirm")
	v.shows("■ stopped")
	evaluated[bool](v, `new Promise(async (done) => {
		const headers = {Authorization: "Bearer " + sessionStorage.getItem("lifthouse.token")};
		while (!(await (await fetch("/deliveries", {headers})).text()).includes("campaign.stopped"));
		done(true);
	})`)
	v.open("/")
	v.until(`document.querySelector(".bell .count")`)
	v.click(".bell")
	v.shows("The campaign was stopped by token")
	v.until(`!document.querySelector(".bell .count")`)
	v.picture("bell")
	evaluated[bool](v, `[...document.querySelectorAll(".messages > li")].find((li) => li.innerText.includes("stopped")).querySelector("a").click() ?? true`)
	v.until(`location.search === "?campaign=12" && !document.querySelector("dialog")`)
}

// TestAutoStopIsSetOnThePage sets auto-stop with a token of the scope admin. Others see it, and may not change it.
func TestAutoStopIsSetOnThePage(t *testing.T) {
	v := newViewer(t)
	v.open("/?campaign=12")
	v.signIn(v.newToken("admin"))
	v.until(allThere)
	v.choose("[name=autoStop]", "rollBack")
	v.until(`document.querySelector("[name=autoStop]")?.value === "rollBack" && !document.querySelector("[name=autoStop]").disabled`)
	v.picture("autostop")
	v.click(".top .sign-out")
	v.signIn(v.newToken("read"))
	v.shows("Auto-stop: at roll back")
	check.That(t, !evaluated[bool](v, `document.querySelector("[name=autoStop]") !== null`), "a token of the scope read is offered to change auto-stop")
}

// TestTheDashboardsPictures compares the pictures that are closed at first with the API, by their tables.
func TestTheDashboardsPictures(t *testing.T) {
	v := newSignedIn(t, "/?campaign=12")
	v.unfolds("[aria-labelledby=variations]")
	v.click("#values summary")
	v.until(`document.querySelector("#values svg.plane")`)
	r := v.report("/v1/campaigns/12/results?distribution=goalValue")
	check.Equal(t, evaluated[int](v, `document.querySelectorAll("#values tbody tr").length`), len(r.Distribution.Bins), "bins")
	for i, bin := range r.Distribution.Bins {
		v.rowIs(fmt.Sprintf("#values tbody tr:nth-child(%d)", i+1), float64(bin.Goals[0]), float64(bin.Goals[1]))
	}
	v.unfolds("[aria-labelledby=progress]")
	v.click("#all-looks summary")
	check.Equal(t, evaluated[int](v, `document.querySelectorAll("#all-looks circle").length`), len(r.Looks), "looks")
	v.look("pictures")

	v.open("/?widget=7")
	v.until(curvesThere)
	v.click("#funnel summary")
	w := v.report("/v1/widgets/7/results").Variations[0]
	for i, n := range []int64{w.Views, w.Clicks, w.Submits, w.Conversions} {
		v.rowIs(fmt.Sprintf("#funnel tbody tr:nth-child(%d)", i+1), float64(n))
	}
	v.look("funnel")
}

// TestTheDashboardLinksToPictures checks that pictures of variations are links, and that nothing is loaded from them.
func TestTheDashboardLinksToPictures(t *testing.T) {
	v := newViewer(t)
	v.declare(`          - {id: 27, name: Shown, type: experiment, controlShare: 50, primaryGoalId: 3, variations: [{id: 1, name: New, share: 50, imageUrl: "https://cdn.example.com/new.png"}]}
`)
	v.openSignedIn("/?campaign=27", `document.querySelector('[data-variation="1"] a')`)
	check.Equal(t, evaluated[string](v, `document.querySelector('[data-variation="1"] a').href`), "https://cdn.example.com/new.png", "link")
	check.Equal(t, evaluated[int](v, `document.images.length`), 0, "pictures that are loaded")
}

// TestTheDashboardExploresASegment compares a filtered view and its complement with the API. The segment has the same
// verdict in the title, beside its complement and in the breakdown, and the decision stands beside it.
func TestTheDashboardExploresASegment(t *testing.T) {
	v := newSignedIn(t, "/?campaign=12&filters[device][]=mobile")
	v.until(`document.querySelectorAll("[data-segment]").length === 2`)
	r := v.report("/v1/campaigns/12/results?filters[device][]=mobile&complement=true")
	control, own := r.Variations[0], r.Variations[1]
	c, other := own.Comparison, own.Comparison.Complement
	word := c.VerdictInWords()
	v.rowIs("[data-segment='device mobile']", float64(own.Visitors), float64(control.Visitors), *c.Improvement.Value,
		*other.ImprovementDifference.Value)
	v.rowIs("[data-segment='all other visitors']", float64(other.Visitors), float64(other.ControlVisitors),
		*other.Improvement.Value)
	v.shows("EXPLORATION")
	decision := v.report("/v1/campaigns/12/results?scorecard=true").Decision
	v.until(fmt.Sprintf(`document.querySelector("#decision")?.innerText.includes(%q)`, decision.Text))
	v.until(fmt.Sprintf(`document.querySelector("#conclusion").innerText.startsWith(%q)`, own.Name+": "+word+","))
	v.until(fmt.Sprintf(`document.querySelector("[data-segment] .verdict").innerText.endsWith(%q)`, word))
	v.look("compare")
	v.choose("[name=dimension]", "device")
	v.until(fmt.Sprintf(`document.querySelector(".segments [data-value=mobile] .verdict")?.innerText.endsWith(%q)`, word))

	whole, mobile := v.report("/v1/campaigns/12/results"), v.report("/v1/campaigns/12/results?filters[device][]=mobile")
	v.click("[aria-labelledby=changed] summary")
	v.until(`document.querySelectorAll("[data-change=Filters] data").length === 2`)
	v.rowIs("[data-change=Filters]", *mobile.Variations[1].Comparison.Improvement.Value,
		*whole.Variations[1].Comparison.Improvement.Value)
}

// TestTheDashboardShowsWhatASettingChanges compares the lifts without a cap and without the limit of outliers with
// the API.
func TestTheDashboardShowsWhatASettingChanges(t *testing.T) {
	v := newViewer(t)
	const (
		home    = "/v1/campaigns/12/results"
		metric  = "compareMetric=valuePerVisitor"
		capped  = "&cap=p95"
		limited = "&filters[zScore]=2"
	)
	v.openSignedIn("/?campaign=12&"+metric+capped+limited, allThere)
	v.click("[aria-labelledby=changed] summary")
	both := *v.report(home + "?" + metric + capped + limited).Variations[1].Comparison.Improvement.Value
	for name, others := range map[string]string{"Cap": limited, "Outliers": capped} {
		v.until(fmt.Sprintf(`document.querySelectorAll("[data-change=%s] data").length === 2`, name))
		without := *v.report(home + "?" + metric + others).Variations[1].Comparison.Improvement.Value
		v.rowIs(fmt.Sprintf("[data-change=%s]", name), both, without)
		check.That(t, without != both, "%s does not change the lift %v", name, both)
	}
	v.look("changed")
}

// TestTheDashboardExplainsAndExports opens the explanation of a term with the keyboard, saves the plot of the lifts,
// and looks at the page as it is printed.
func TestTheDashboardExplainsAndExports(t *testing.T) {
	v := newSignedIn(t, "/?campaign=12")
	evaluated[bool](v, `document.querySelector("[aria-label='What is “Split”?']").focus(), true`)
	v.press(kb.Enter)
	v.until(`document.querySelector(".trust .help-text:popover-open")?.innerText.includes("sample ratio mismatch")`)
	v.look("help")
	v.press(kb.Escape)
	v.until(`!document.querySelector(":popover-open")`)

	v.click(".glossary summary")
	v.shows("also called average order value")

	v.choose("[name=period]", "14")
	const inBerlin = `.toLocaleDateString("sv-SE", { timeZone: "Europe/Berlin" })`
	v.until(`document.querySelector("[name=dateFrom]").value === new Date(Date.now() - 14 * 864e5)` + inBerlin)
	v.until(`document.querySelector("[name=dateTo]").value === new Date(Date.now() - 864e5)` + inBerlin)
	v.shows("These dates begin at midnight in Europe/Berlin.")
	v.choose("[name=period]", "")
	v.until(`location.search === "?campaign=12"`)
	v.until(allThere)

	evaluated[bool](v, `(() => { const of = URL.createObjectURL; URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); return of(blob); }; return true })()`)
	call(v, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{
			Name:  "prefers-color-scheme",
			Value: "dark",
		}}})
	v.unfolds("[aria-labelledby=request]")
	v.click("#svg")
	v.until(`window.saved`)
	v.shows("Saved as campaigns-12-results.svg")
	check.Equal(t, evaluated[int64](v, `new DOMParser().parseFromString(window.saved, "image/svg+xml").querySelectorAll("svg > svg circle").length`), 4, "estimates of the plot")
	paper := evaluated[string](v, `new DOMParser().parseFromString(window.saved, "image/svg+xml").querySelector("rect").getAttribute("fill")`)
	check.That(t, paper == "rgb(255, 255, 255)", "the plot saved in the dark scheme is on %s, want white", paper)

	call(v, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
	check.That(t, !evaluated[bool](v, `[...document.querySelectorAll("button:not(.sort), .controls, details:not([open], .part, #evidence), .glossary, #request")].some((e) => e.checkVisibility())`),
		"a printed page has buttons or settings")
	check.That(t, evaluated[bool](v, `[...document.querySelectorAll(".segments .sort")].every((e) => e.checkVisibility())`), "the headings of segments are not printed")
	v.picture("print")
	pdf := must.Get(chromedp.Call(v.ctx, page.PrintToPDF, page.PrintToPDFParams{PreferCSSPageSize: new(true)}))(v)
	check.Contains(t, string(pdf.Data), "/Count 2\n", "pages of the print")
}

// TestTheDocsPage looks at the page of the API in several widths, searches it with the keyboard, and checks that it
// loads nothing from other hosts.
func TestTheDocsPage(t *testing.T) {
	v := newViewer(t)
	for _, width := range []int64{390, 700, 1440} {
		v.sized(width, 900)
		v.open("/docs")
		v.shows("Get a campaign's results")
		wide := evaluated[int64](v, `document.documentElement.scrollWidth`)
		check.That(t, wide <= width, "the page is %d px wide on a screen of %d px", wide, width)
		v.picture(fmt.Sprintf("docs-%d", width))
	}
	// With the keyboard: to the search, to a result, and to its operation.
	v.until(`document.querySelector("[role=search] input")`)
	focused := `document.activeElement === document.querySelector("[role=search] input")`
	for range 20 {
		if evaluated[bool](v, focused) {
			break
		}
		v.do(chromedp.KeyEvent("\t"))
	}
	v.until(focused)
	v.do(chromedp.KeyEvent("results"))
	v.until(`document.querySelectorAll("[role=search] [role=menuitem]").length > 0`)
	v.picture("docs-search")
	v.do(chromedp.KeyEvent(kb.ArrowDown + kb.Enter))
	v.until(`location.hash.length > 1`)
	for _, request := range v.requests() {
		check.That(t,
			strings.HasPrefix(request.URL, v.site) || strings.HasPrefix(request.URL, "data:") ||
				strings.HasPrefix(request.URL, "blob:"),
			"the page loads %s", request.URL)
	}
}
