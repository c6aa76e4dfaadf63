package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"lifthouse/engine/result"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/stats"
)

// listedStatus is the part of an element of GET /v1/campaigns?include=status that the start page shows.
type listedStatus struct {
	ID     int64  `json:"id"`
	Name   string `json:"name"`
	Active bool   `json:"active"`
	Status struct {
		Decision *result.Decision `json:"decision"`
		Lift     *stats.Effect    `json:"lift"`
		Visitors *int64           `json:"visitors"`
		Days     *int             `json:"days"`
	} `json:"status"`
}

// statusesThere is true if the start page shows all statuses.
const statusesThere = `document.querySelectorAll("[data-id]").length === 20 && !document.body.innerText.includes("computing …")`

// TestTheDashboardsOverview compares the groups and numbers of the start page with the API, and sorts and links to
// reports.
func TestTheDashboardsOverview(t *testing.T) {
	v := newViewer(t)
	v.openSignedIn("/", statusesThere)
	var campaigns []listedStatus
	v.server.get("/v1/campaigns?include=status", v.token, &campaigns)
	groups := map[string]string{
		"ship": "decide", "rollBack": "decide", "noDifference": "decide", "noWinner": "decide",
		"invalid": "attention", "keepRunning": "running",
	}
	for _, c := range campaigns {
		group := groups[string(c.Status.Decision.Status)]
		if !c.Active {
			group = "done"
		}
		row := fmt.Sprintf(`section.group.%s [data-kind=campaign][data-id="%d"]`, group, c.ID)
		v.rowIs(row, *c.Status.Lift.Value, float64(*c.Status.Visitors), float64(*c.Status.Days))
	}

	names := func(group string) string {
		return strings.Join(evaluated[[]string](v, fmt.Sprintf(`[...document.querySelectorAll(".%s [data-id] a")].map((e) => e.innerText)`, group)), ", ")
	}
	v.click(".decide th button") // by name
	check.Equal(t, names("decide"), "Free delivery banner, Longer checkout form, Newsletter, Sticky header, Trial reminder", "by name")
	v.click(".decide th:nth-child(4) button") // by lift, the largest first
	check.Equal(t, names("decide"), "Newsletter, Free delivery banner, Trial reminder, Sticky header, Longer checkout form", "by lift")
	check.Equal(t, evaluated[string](v, `document.querySelector(".decide th:nth-child(4)").ariaSort + location.search`), "descending?sort=-lift", "the sort is")
	v.click(`[data-kind=campaign][data-id="16"] a`)
	v.shows("Roll back Long form")
}

// TestTheDashboardAnswersFiveQuestions checks that the answers to the questions of a product manager are visible at
// 1440 x 900 without scrolling.
func TestTheDashboardAnswersFiveQuestions(t *testing.T) {
	v := newViewer(t)
	v.sized(1440, 900)
	v.openSignedIn("/", statusesThere)
	for _, question := range []struct{ name, address, ready, answer, selector string }{
		{"What needs a decision?", "/", statusesThere, "Free delivery banner", ".group.decide tbody"},
		{"Shall I ship the banner, and what is it worth?", "/?campaign=12", allThere, "a month", ".conclusion.ship .worth"},
		{"Must I roll back the form?", "/?campaign=16", allThere, "Roll back Long form", ".conclusion.rollBack #decision"},
		{"How long must the button run?", "/?campaign=13", allThere, "next look is on", ".conclusion.keepRunning #decision"},
		{"Can I trust the new search?", "/?campaign=17", allThere, "sample ratio mismatch", ".trust .bad"},
	} {
		v.open(question.address)
		v.until(question.ready)
		v.until(fmt.Sprintf(`document.querySelector(%q)?.innerText.includes(%q)`, question.selector, question.answer))
		end := evaluated[float64](v, fmt.Sprintf(`document.querySelector(%q).getBoundingClientRect().bottom`, question.selector))
		check.That(t, end <= 900, "%s The answer ends at %.0f px", question.name, end)
	}
	v.openAll("/?campaign=12")
	end := evaluated[float64](v, `document.querySelector(".scorecard [data-role=primary]").getBoundingClientRect().bottom`)
	check.That(t, end <= 900, "the primary metric ends at %.0f px", end)
}

// TestTheDashboardsScorecard compares the scorecard, the impact and the trust strip with the API.
func TestTheDashboardsScorecard(t *testing.T) {
	v := newSignedIn(t, "/?campaign=12")
	v.until(`document.querySelector(".scorecard")`)
	v.click("#others")
	v.click("[name=looks]")
	r := v.report("/v1/campaigns/12/results?scorecard=true")
	for _, row := range r.Scorecard {
		own := row.Variations[1]
		if own.Estimate.Value == nil || *own.Estimate.Value == 0 {
			continue
		}
		selector := fmt.Sprintf(`.scorecard [data-goal="%d"][data-metric=%s]`, row.Goal.ID, row.Metric)
		want := []float64{*row.Variations[0].Estimate.Value, *own.Estimate.Value, *own.Comparison.Improvement.Value}
		if p := own.Comparison.Sequential.PValue; p != nil { // only the primary metric and the guardrails have looks
			want = append(want, *p)
		}
		v.rowIs(selector, want...)
		g := own.Guardrail
		check.That(t, g == nil || evaluated[bool](v, fmt.Sprintf(`document.querySelector(%q).querySelector(".margin") !== null`, selector)), "%s has no margin", selector)
	}
	primary := r.Scorecard[0].Variations[1]
	check.Equal(t, strings.ReplaceAll(evaluated[string](v, `document.querySelector(".worth > span").innerText`), "\u00a0", " "), r.Worth.Items[0].Text, "worth on the page")
	v.click("[name=absolute]")
	values, _ := v.row(".scorecard [data-role=primary]")
	must.That(t, len(values) >= 3, "the primary metric shows %q, want the difference %v", values,
		*primary.Comparison.Difference.Value)
	check.That(t, same(values[2], *primary.Comparison.Difference.Value),
		"the primary metric shows %q, want the difference %v", values, *primary.Comparison.Difference.Value)
	causes, _ := v.row("[data-cause]")
	must.Equal(t, len(causes), 9, "numbers of the cause %q", causes)
	check.Equal(t, evaluated[string](v, `document.querySelector("#decision").innerText`), r.Decision.Text, "on the page")
}

// TestTheDashboardSaysWhatWaitingCosts checks progress and the cost of waiting of a campaign without a decision, and
// the trust strip of one that is not trustworthy.
func TestTheDashboardSaysWhatWaitingCosts(t *testing.T) {
	v := newSignedIn(t, "/?campaign=14")
	r := v.report("/v1/campaigns/14/results?scorecard=true")
	best := 0.0
	for _, item := range r.Worth.Items {
		best = max(best, item.Expected.ValuePerMonth.Value)
	}
	values, _ := v.row("[aria-labelledby=progress]")
	check.That(t, slices.ContainsFunc(values, func(shown string) bool { return same(shown, best*7/30) }),
		"progress has the numbers %q, want a week of waiting, %v, among them", values, best*7/30)
	v.shows("each week of waiting costs about")
	v.openAll("/?campaign=17")
	newest := "fine" // in the first hour of a day, as the demo ends at midnight
	for _, w := range v.report("/v1/campaigns/17/results?scorecard=true").Checks.Warnings {
		if w.Code == "SILENT" {
			newest = "warn"
		}
	}
	got := evaluated[[]string](v, `[...document.querySelectorAll(".trust li")].map((e) => e.className)`)
	check.That(t, slices.Equal(got, []string{"bad", "fine", "fine", newest}),
		"the trust strip is %q, want the newest event to be %s", got, newest)
}

// TestTheDashboardOfSeveralWebsites chooses a website, and keeps it on the way to a campaign and back.
func TestTheDashboardOfSeveralWebsites(t *testing.T) {
	v := newViewer(t)
	const websites = "    websites:\n"
	v.changes(websites, websites+`      - id: 2
        domain: second.example.com
        goals: [{id: 30, name: Order}]
        campaigns:
          - {id: 40, name: Only here, type: experiment, controlShare: 50, primaryGoalId: 30,
             variations: [{id: 1, name: New, share: 50}]}
`)
	v.openSignedIn("/?websiteId=1", statusesThere)
	v.choose("[name=websiteId]", "2")
	v.until(`document.querySelectorAll("[data-id]").length === 1 && document.querySelector("h1").innerText === "second.example.com"`)
	v.until(`document.querySelector(".group.notStarted [data-id='40']")`)
	v.click(`[data-id="40"] a`)
	v.shows("○ not started")
	v.until(`location.search === "?campaign=40&websiteId=2"`)
	v.click(".subject a")
	v.until(`location.search === "?websiteId=2" && document.querySelector("[data-id='40']")`)
}

// TestTheDashboardMarksNewDecisions changes what the browser remembers of the last visit: only the decision that differs
// is new. The list also says what the decision is worth and what changed since yesterday. It stops no campaign.
func TestTheDashboardMarksNewDecisions(t *testing.T) {
	v := newViewer(t)
	v.openSignedIn("/", statusesThere)
	v.until(`Object.keys(JSON.parse(localStorage.getItem("lifthouse.decisions"))).length === 20`)
	check.Equal(t, evaluated[int](v, `document.querySelectorAll(".new").length`), 0, "new decisions at the first visit")
	v.shows("Since yesterday: 1 decision (New search), 1 check failed (New search).")
	v.until(`document.querySelector("[data-id='12'] [data-label='Worth a month']").innerText.includes("EUR")`)
	check.Equal(t, evaluated[string](v, `document.querySelector("[data-id='12'] .chip").innerText`), "Ship Banner", "decision")
	evaluated[bool](v, `(() => {
		const known = JSON.parse(localStorage.getItem("lifthouse.decisions"));
		localStorage.setItem("lifthouse.decisions", JSON.stringify({ ...known, campaign12: "keepRunning" }));
		return true;
	})()`)
	v.open("/?search=banner") // another visit
	v.until(`document.querySelector("[data-id='12'] .new") && document.querySelectorAll(".new").length === 1`)
	check.That(t, !evaluated[bool](v, `document.querySelector("[data-id] button") !== null`), "a row stops a campaign")
}

// textsOfRows returns the pairs of texts within a row of the list whose boxes intersect.
const textsOfRows = `[...document.querySelectorAll("[data-id]")].flatMap((row) => {
	const boxes = [], walker = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
	for (let node; (node = walker.nextNode());) {
		if (!node.data.trim() || node.parentElement.closest(".hidden")) continue;
		const range = document.createRange();
		range.selectNodeContents(node);
		for (const box of range.getClientRects()) if (box.width > 1 && box.height > 1) boxes.push({ node, box });
	}
	const overlap = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
		Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2;
	return boxes.flatMap((a, i) => boxes.slice(i + 1)
		.filter((b) => a.node !== b.node && overlap(a.box, b.box))
		.map((b) => a.node.data + " | " + b.node.data));
})`

// TestTheListAtAllWidths checks that no two texts of a row of the list intersect, with the names of the demo and with long
// ones, and that a phone shows the first item early and each one in a small box.
func TestTheListAtAllWidths(t *testing.T) {
	v := newViewer(t)
	v.openSignedIn("/", statusesThere)
	const lengthenNames = `document.querySelectorAll("[data-id] th a, [data-id] th small, [data-id] .chip").forEach((e) => ` +
		`{ e.textContent = "Donaudampfschifffahrtsgesellschaftskapitän " + e.textContent; }); ` +
		`document.querySelectorAll("[data-id] .flag").forEach((e) => { e.textContent = "depends on another campaign"; })`
	for _, width := range []int64{390, 1280, 1440, 1920} {
		v.sized(width, 844)
		v.open("/")
		v.until(statusesThere)
		check.Equal(t, strings.Join(evaluated[[]string](v, textsOfRows), "\n"), "", "%d pixels: texts that intersect",
			width)
		if width == 390 {
			const first = `document.querySelector("[data-id]").getBoundingClientRect().top + scrollY`
			top := evaluated[float64](v, first)
			check.That(t, top <= 330, "the first item of a phone is at %.0f pixels", top)
			highest := evaluated[float64](v,
				`Math.max(...[...document.querySelectorAll("[data-id]")].map((e) => e.getBoundingClientRect().height))`)
			check.That(t, highest <= 150, "an item of a phone has %.0f pixels", highest)
		}
		evaluated[any](v, lengthenNames)
		check.Equal(t, strings.Join(evaluated[[]string](v, textsOfRows), "\n"), "",
			"%d pixels, long names: texts that intersect", width)
	}
}

// TestInvalidNumbersAreClosed checks that the page of a campaign with a sample ratio mismatch shows no lift and no verdict
// at first, and no verdict beside the numbers when they are opened.
func TestInvalidNumbersAreClosed(t *testing.T) {
	v := newViewer(t)
	v.openSignedIn("/?campaign=17", `document.querySelector(".not-valid")`)
	check.That(t, !evaluated[bool](v, `document.querySelector(".scorecard") !== null`), "the scorecard is shown at first")
	v.click(".not-valid summary")
	v.until(`document.querySelector(".not-valid .scorecard")`)
	const visible = `[...document.querySelectorAll(".not-valid .verdict")].some((e) => e.checkVisibility())`
	check.That(t, !evaluated[bool](v, visible), "a verdict is shown beside numbers that are not valid")
}

// TestEndedCampaignsDoNotRefresh checks that the page of a campaign that has ended neither says that it refreshes nor
// that it is loading, although events of other campaigns arrive.
func TestEndedCampaignsDoNotRefresh(t *testing.T) {
	v := newViewer(t)
	v.openSignedIn("/?campaign=100", allThere)
	v.shows("data through")
	check.That(t, !evaluated[bool](v, `document.body.innerText.includes("refreshes every")`), "the page says that it refreshes")
	check.That(t, !evaluated[bool](v, `document.body.innerText.includes("Not up to date")`), "the page says that it is not up to date")
}
