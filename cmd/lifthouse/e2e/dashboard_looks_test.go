package e2e

import (
	_ "embed"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"lifthouse/engine/result"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestTheDashboardForEverybody checks accessibility with axe in both themes, and that nothing is wider than the screen.
// It writes screenshots to the directory in SCREENS, if that is set.
func TestTheDashboardForEverybody(t *testing.T) {
	v := newViewer(t)
	v.open("/")
	v.until(`document.querySelector("[name=token]")`)
	v.look("sign-in")
	v.signIn(v.token)
	v.until(statusesThere)
	v.look("list")
	v.openAll("/?campaign=12&dimension=device")
	v.look("results")
	v.openAll("/?campaign=13&filters[device][]=mobile&filters[device][]=tablet")
	v.click("[aria-labelledby=variations] summary")
	v.click("[aria-labelledby=overtime] summary")
	v.look("three")
	v.click("#switch")
	v.look("dialog")
	v.openAll("/?campaign=14")
	v.look("bayesian")
	v.open("/?show=widgets")
	v.shows("Newsletter")
	v.look("widgets")
	v.open("/?widget=7")
	v.until(curvesThere)
	v.look("widget")
	v.openAll("/?widget=7&experiment=2")
	v.look("experiment")
	v.open("/?campaign=13&filters[dateTo]=2001-01-01")
	v.shows("No visitors yet, or no visitors")
	v.look("empty")
	v.open("/?campaign=12&dimension=size")
	v.shows("dimension is size")
	v.look("refused")
}

// look runs axe on the page in both themes and three widths, and checks that nothing is wider than the screen.
func (v *viewer) look(name string) {
	v.Helper()
	axe := must.Get(os.ReadFile("../../../node_modules/axe-core/axe.min.js"))(v)
	for _, width := range []int64{900, 1000, 1100} {
		v.sized(width, 800)
		wide := evaluated[int64](v, `document.documentElement.scrollWidth`)
		check.That(v, wide <= width, "%s at %d px is %d px wide", name, width, wide)
	}
	for _, theme := range []string{"light", "dark"} {
		v.themed(theme)
		for _, width := range []int64{360, 800, 1440} {
			v.sized(width, 800)
			evaluated[bool](v, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
			wide := evaluated[int64](v, `document.documentElement.scrollWidth`)
			check.That(v, wide <= width, "%s at %d px is %d px wide", name, width, wide)
			evaluated[bool](v, string(axe)+`; true`)
			for _, finding := range evaluated[[]string](v, `axe.run({ rules: { "target-size": { enabled: true } } }).then((r) => r.passes.length < 10 ? ["it looked at nothing"] : r.violations.filter((f) => ["moderate", "serious", "critical"].includes(f.impact)).map((f) => f.id + ": " + f.help + " " + f.nodes.map((n) => n.target.join(" ") + " " + n.failureSummary).join("; ")))`) {
				v.Errorf("%s, %s, %d px: %s", name, theme, width, finding)
			}
			v.picture(fmt.Sprintf("%s-%s-%d", name, theme, width))
		}
	}
}

// TestTheDashboardOfABayesianCampaign compares the numbers of the posterior with the API.
func TestTheDashboardOfABayesianCampaign(t *testing.T) {
	v := newSignedIn(t, "/?campaign=14")
	r := v.report("/v1/campaigns/14/results")
	var want []float64
	for _, variation := range r.Variations[1:] {
		b := variation.Comparison.Bayesian
		want = append(want, *b.ChanceToBeatControl, *b.ChanceToBeBest, *variation.Comparison.Improvement.Value,
			*variation.Comparison.Improvement.Observed, *b.ExpectedLoss, *b.ExpectedLossControl)
	}
	shown := v.rowIs("[aria-labelledby=posterior]", want...)
	check.That(t, strings.HasSuffix(shown[4], " points"), "the expected loss of a rate is shown as %q, want points of percentage", shown[4])
	v.until(`document.querySelectorAll("details").forEach((d) => { d.open = true; }) || document.querySelector("#rule") !== null`)
	const words = `(document.querySelector("main, #main").innerText.match(/(\bp ?[=<]|p-value|significan|confidence).*/gi) ?? [])`
	found := evaluated[[]string](v, words)
	check.That(t, len(found) == 0, "a Bayesian page speaks another method: %q", found)
	for id := range r.Variations[1:] {
		i := r.Variations[id+1].Comparison.Improvement
		v.rowIs(fmt.Sprintf("[data-role=primary]:nth-of-type(%d) td:nth-of-type(3)", id+1), *i.Value, *i.Observed)
	}
	factors := evaluated[[]float64](v, `[...document.querySelectorAll(".causes .term b data")].map((e) => Number(e.value))`)
	check.Equal(t, len(factors), 3*len(r.Variations[1:]), "factors")
	for of := range slices.Chunk(factors, 3) {
		check.That(t, math.Abs((1+of[0])*(1+of[1])-1-of[2]) <= 1e-12, "the factors %v do not multiply", of)
	}
	const share = `(() => { const e = document.querySelector("[data-role=primary] .forest-row line.thick"); return parseFloat(e.getAttribute("x2")) - parseFloat(e.getAttribute("x1")) })()`
	width := evaluated[float64](v, share)
	check.That(t, width >= 30, "the credible interval has %v %% of the axis", width)
	v.picture("bayesian")
}

// looksAreTheAPIs compares the looks, the date of the next one and the look that decided with the API, and checks that
// a metric without a conclusion has no green verdict.
func (v *viewer) looksAreTheAPIs() {
	v.Helper()
	text := func(selector string) string {
		return evaluated[string](v, fmt.Sprintf(`document.querySelector(%q)?.textContent.replaceAll("\u00a0", " ") ?? ""`, selector))
	}
	r := v.report("/v1/campaigns/12/results")
	must.That(v, len(r.Looks) != 0, "the demo's campaign 12 has %d looks, conclusion %+v, next look %v", len(r.Looks), r.Conclusion, r.NextLook)
	must.That(v, r.Conclusion.Look != nil, "the demo's campaign 12 has %d looks, conclusion %+v, next look %v", len(r.Looks), r.Conclusion, r.NextLook)
	must.That(v, r.NextLook != nil, "the demo's campaign 12 has %d looks, conclusion %+v, next look %v", len(r.Looks), r.Conclusion, r.NextLook)
	day := func(end time.Time) string { return end.Add(-time.Second).Format(time.DateOnly) }
	last := r.Looks[len(r.Looks)-1]
	next := day(r.NextLook.End) + ", published on " + r.NextLook.PublishedAt.UTC().Format("Monday, 2 January")
	decision := v.report("/v1/campaigns/12/results?scorecard=true").Decision
	must.That(v, decision != nil, "the demo's campaign 12 has the decision %+v", decision)
	must.That(v, decision.DecidedAt != nil, "the demo's campaign 12 has the decision %+v", decision)
	at := slices.IndexFunc(r.Looks, func(l result.Look) bool { return l.End.Equal(*decision.DecidedAt) })
	must.That(v, at >= 0, "no look ends at %s", decision.DecidedAt)
	since := fmt.Sprintf("since look %d, %s", at+1, day(*decision.DecidedAt))
	if better := *r.Conclusion.Look; better < at+1 {
		since = fmt.Sprintf("better since look %d, %s; shippable %s, when the guardrails were known to be safe", better,
			day(r.Looks[better-1].End), since)
	}
	for _, part := range []struct{ selector, want string }{
		{"#next-look", "Next look " + next},
		{"#since", since},
		{"#looks", fmt.Sprintf("Look %d on %s, after %.0f %% of the plan. Next look on %s.", last.Number, day(last.End), 100*last.Tau, next)},
		{"figure .look", "next look " + day(r.NextLook.End)},
	} {
		got := text(part.selector)
		check.That(v, strings.Contains(got, part.want), "%s reads %q, want %q in it", part.selector, got, part.want)
	}
	if got := evaluated[string](v, `document.querySelector(".chart").ariaLabel`); !strings.Contains(got, day(last.End)) || !strings.Contains(got, "The next look is on "+day(r.NextLook.End)) {
		v.Errorf("the chart is described as %q", got)
	}
	v.unfolds("[aria-labelledby=progress]")
	v.click("#all-looks summary")
	for _, look := range r.Looks {
		var want []float64
		for _, variation := range look.Variations {
			want = append(want, float64(look.Visitors))
			if variation.Reason == "" {
				want = append(want, *variation.Improvement.Value)
			}
			if variation.Z != nil {
				want = append(want, *variation.Z)
			}
			if variation.PValue != nil {
				want = append(want, *variation.PValue)
			}
		}
		v.rowIs(fmt.Sprintf(`#all-looks [data-look="%d"]`, look.Number), want...)
	}
	check.Equal(v, evaluated[int64](v, `document.querySelectorAll("[aria-labelledby=variations] .verdict.better").length`), 1, "green verdicts")
	v.open("/?campaign=12&compareMetric=valuePerVisitor")
	v.shows("EXPLORATION")
	check.Equal(v, evaluated[int64](v, `document.querySelectorAll("[aria-labelledby=variations] .verdict.better, .conclusion.winner, #next-look, #looks").length`), 0, "parts of a conclusion in a report that describes")
	v.openAll("/?campaign=12")
}

// watch records when the table of variations and the chart are first painted, in milliseconds since the navigation.
//
//go:embed testdata/watch.js
var watch string

// TestTheDashboardsFirstResults measures the time to the first results with an empty browser cache and a warm server,
// and how much the parts of the page move while they load. The time depends on the machine and has no bound.
func TestTheDashboardsFirstResults(t *testing.T) {
	v := newSignedIn(t, "/?campaign=12")
	call(v, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true})
	call(v, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watch})
	var table, curves []int
	for range 5 {
		v.open("/?campaign=12")
		v.until("window.seen?.table && window.seen.curves")
		table = append(table, int(evaluated[float64](v, "window.seen.table")))
		curves = append(curves, int(evaluated[float64](v, "window.seen.curves")))
	}
	slices.Sort(table)
	slices.Sort(curves)
	v.until(allThere)
	if moved := evaluated[float64](v, "window.moved.total"); moved > 0.02 { // a fifth of what web-vitals calls good
		t.Errorf("layout shift %.4f: %q", moved, evaluated[[]string](v, "window.moved.what"))
	}
	t.Logf("first results after %d ms (of five: %v), curves after %d ms", table[2], table, curves[2])
}

// picture writes a screenshot to the directory in SCREENS, if that is set.
func (v *viewer) picture(name string) {
	v.Helper()
	folder := os.Getenv("SCREENS")
	if folder == "" {
		return
	}
	shot := must.Get(chromedp.Run(v.ctx, chromedp.FullScreenshot(100)))(v)
	must.OK(v, os.WriteFile(filepath.Join(folder, name+".png"), shot, 0o600))
}
