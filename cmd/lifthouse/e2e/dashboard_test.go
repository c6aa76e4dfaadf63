package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/wording"
	"lifthouse/engine/worth"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/stats"
)

// curvesThere is true if the page has a chart and loads nothing.
const curvesThere = `document.querySelector(".uplot") && !document.querySelector(".loading, [aria-busy=true]")`

// allThere is true if the results page has all its parts.
const allThere = `document.querySelector("#conclusion") && !document.querySelector(".loading, [aria-busy=true]")
	&& (document.querySelectorAll(".uplot").length === 1 || document.querySelector(".not-valid:not([open])"))`

// report returns the report of the API.
func (v *viewer) report(address string) result.Report {
	v.Helper()
	var results result.Report
	v.server.get(address, v.token, &results)
	return results
}

// row returns the numbers of a row of the page: raw values and shown texts.
func (v *viewer) row(selector string) (values, shown []string) {
	v.Helper()
	found := evaluated[[][]string](v, fmt.Sprintf(`[...document.querySelectorAll(%q)].map((e) => [e.value, e.textContent.replaceAll("\u00a0", " ")])`, selector+" data"))
	for _, pair := range found {
		values, shown = append(values, pair[0]), append(shown, pair[1])
	}
	return values, shown
}

// same reports whether a number of the page equals one of the API exactly.
func same(page string, number float64) bool {
	x, err := strconv.ParseFloat(page, 64)
	return err == nil && x == number
}

// TestTheDashboardFromSignInToStop uses the page like a person. The steps are one test, because each step starts where
// the previous one ended.
func TestTheDashboardFromSignInToStop(t *testing.T) {
	v := newViewer(t)
	v.open("/?campaign=12")
	v.enter("[name=token]", "lh_wrong")
	v.click(".sign-in button")
	v.shows("the token is unknown")
	evaluated[string](v, `document.querySelector("[name=token]").value = ""`)
	v.signIn(v.token)
	v.until(allThere) // signing in leads to what was asked for
	v.numbersAreTheAPIs("/v1/campaigns/12/results", "%.2f %%")
	v.looksAreTheAPIs()

	v.click(".name")
	v.listAndItsFilters()
	v.click(`[data-id="12"] a`)
	v.until(allThere)
	v.filtersWriteTheAddress()
	v.openAll("/?campaign=12")
	v.requestsCanBeTaken()
	v.refreshesInPlace()
	v.stopsAndStarts()

	for _, request := range v.requests() {
		own := strings.HasPrefix(request.URL, v.server.url+"/") || strings.HasPrefix(request.URL, "blob:"+v.server.url)
		if !own && !strings.HasPrefix(request.URL, "data:") { // the browser's own signs, in a field of a date
			t.Errorf("the page asks %s", request.URL)
		}
		check.That(t, !strings.Contains(request.URL, "lh_"), "a token is in %s", request.URL)
	}
	v.failures()
}

// numbersAreTheAPIs compares the conclusion, each variation and the progress with the API. Rates have as many decimals
// as their intervals justify.
func (v *viewer) numbersAreTheAPIs(address, rate string) {
	v.Helper()
	r := v.report(address)
	want := r.Conclusion.Text
	if slices.Contains(r.Conclusion.Reasons, stats.ReasonNotDeclared) { // an exploration
		c, own := r.Variations[1].Comparison, r.Variations[1].Name
		want = fmt.Sprintf("%s: %s, lift %s", own, c.VerdictInWords(),
			wording.FormatLift(*c.Improvement.Value, c.Improvement.Interval))
	}
	got := evaluated[string](v, `document.querySelector("#conclusion").textContent.replaceAll("\u00a0", " ")`)
	check.That(v, strings.HasPrefix(got, want), "the page concludes %q, the API %q", got, want)
	for i, variation := range r.Variations {
		values, shown := v.row(fmt.Sprintf(`[data-variation="%d"]`, variation.ID))
		value := must.Get(strconv.ParseFloat(variation.Value.String(), 64))(v)
		metric := compared(&r, i)
		want := []float64{
			float64(variation.Visitors), float64(variation.ConvertedVisitors),
			float64(variation.GoalsReached), value, metric,
		}
		texts := []string{
			thousands(variation.Visitors), thousands(variation.ConvertedVisitors),
			thousands(variation.GoalsReached), "", fmt.Sprintf(rate, 100*metric),
		}
		if c := variation.Comparison; c != nil {
			want = append(want, *c.Improvement.Value, *c.Frequentist.AdjustedPValue)
			texts = append(texts, fmt.Sprintf("%+.1f %%", 100**c.Improvement.Value), "")
			if c.Sequential.PValue != nil { // of the last look
				want, texts = append(want, *c.Sequential.PValue), append(texts, "")
			}
			if c.Evidence != nil && c.Evidence.Reason == "" {
				want, texts = append(want, c.Evidence.PValue), append(texts, "")
			}
		}
		must.Equal(v, len(values), len(want), "numbers of %s %q", variation.Name, values)
		for i := range want {
			if !same(values[i], want[i]) || texts[i] != "" && texts[i] != shown[i] {
				v.Errorf("%s, number %d: the page has %s and shows %q, the API has %v, want %q", variation.Name, i, values[i], shown[i], want[i], texts[i])
			}
		}
	}
	values, _ := v.row(`[aria-labelledby="progress"]`)
	must.That(v, len(values) != 0, "progress is %q, want %v", values, *r.Power.Progress)
	check.That(v, same(values[0], *r.Power.Progress), "progress is %q, want %v", values, *r.Power.Progress)
}

// compared returns the compared rate of a variation.
func compared(r *result.Report, i int) float64 {
	if *r.CompareMetric == query.ConversionRate {
		return *r.Variations[i].Metrics.ConversionRate.Value
	}
	return *r.Variations[i].Metrics.GoalConversionRate.Value
}

// thousands formats a count like the page.
func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func (v *viewer) listAndItsFilters() {
	v.Helper()
	rows := func(n int) { v.until(fmt.Sprintf(`document.querySelectorAll("[data-id]").length === %d`, n)) }
	rows(20) // seven running campaigns, twelve past ones and a widget
	v.enter("[name=search]", "colour")
	rows(1)
	v.until(`location.search === "?search=colour"`)
	v.open("/?search=nothing+like+it")
	v.shows("No matching campaigns or widgets.")
	v.open("/")
	v.choose("[name=active]", "false")
	rows(12)
	v.until(`location.search === "?active=false"`)
	v.choose("[name=active]", "true")
	rows(8)
	v.choose("[name=type]", "themeExperiment")
	v.shows("No matching campaigns or widgets.")
	v.open("/?show=widgets")
	v.shows("Newsletter")
	v.choose("[name=type]", "bar")
	v.shows("No matching widgets.")
	v.click(".tabs a:nth-child(2)")
	rows(19)
	v.choose("[name=owner]", "Ada")
	rows(2)
	v.choose("[name=tag]", "q4")
	rows(1)
	v.until(`location.search === "?show=campaigns&owner=Ada&tag=q4"`)
	v.programmeIsTheAPIs()
	v.open("/")
}

// programmeIsTheAPIs compares the programme with the API, and changes an outcome and back.
func (v *viewer) programmeIsTheAPIs() {
	v.Helper()
	v.open("/")
	v.click(".tabs a:nth-child(4)")
	v.until(`document.querySelectorAll(".programme tbody tr").length === 19`)
	var p worth.Programme
	v.server.get("/v1/websites/1/worth", v.token, &p)
	said := `[...document.querySelectorAll(".conclusion p")].map((p) => p.innerText.replaceAll("\u00a0", " ")).join("\n")`
	check.Equal(v, evaluated[string](v, said), strings.Join(p.Sentences, "\n"), "sentences on the page")
	for i := range p.Items {
		if item := &p.Items[i]; item.Expected != nil {
			values, _ := v.row(fmt.Sprintf(`.programme tbody tr:nth-child(%d)`, i+1))
			must.Equal(v, len(values), 1, "%s has %q, want %v", item.Campaign, values,
				item.Expected.ValuePerMonth.Value)
			check.That(v, same(values[0], item.Expected.ValuePerMonth.Value), "%s has %q, want %v", item.Campaign,
				values, item.Expected.ValuePerMonth.Value)
		}
	}
	outcome := `[aria-label="Outcome of Trust badges, Badges"]`
	shipped := fmt.Sprintf(`document.querySelector(".conclusion").innerText.includes("Shipped: %d")`, p.Campaigns.Shipped+1)
	v.choose(outcome, "shipped")
	v.until(shipped)
	v.choose(outcome, "default")
	v.until("!" + shipped)
	excluded := func(campaigns int) string {
		return fmt.Sprintf(`document.body.innerText.includes(", %d by hand.")`, campaigns)
	}
	v.choose(outcome, "excluded")
	v.click(".exclude [type=button]") // cancels
	v.until(fmt.Sprintf(`document.querySelector(%q).value === "default" && !document.querySelector(".exclude")`,
		outcome))
	v.choose(outcome, "excluded")
	v.click(".exclude [type=submit]") // without a note, nothing is sent
	v.until(`document.querySelector(".exclude :invalid") && ` + excluded(p.Campaigns.ExcludedByHand))
	v.enter(".exclude input", "It was an A/A test.")
	v.click(".exclude [type=submit]")
	v.until(`!document.querySelector(".exclude") && ` + excluded(p.Campaigns.ExcludedByHand+1))
	v.until(fmt.Sprintf(`document.querySelector(%q).parentNode.innerText.includes("It was an A/A test.")`, outcome))
	v.choose(outcome, "default")
	v.until(excluded(p.Campaigns.ExcludedByHand))
}

func (v *viewer) filtersWriteTheAddress() {
	v.Helper()
	v.until(`document.querySelectorAll(".segments tbody tr").length === 3`)
	r := v.report("/v1/campaigns/12/results?dimension=device")
	v.segmentsAre(r.Breakdown)
	v.choose("[name=compareMetric]", "valuePerVisitor")
	v.choose("[name=goal]", "3")
	v.unfolds(".settings details")
	v.until(`document.querySelector(".filter [name=value] [value=mobile]")`)
	v.choose(".filter [name=value]", "mobile")
	v.click(".filter button")
	v.until(`decodeURIComponent(location.search) === "?campaign=12&compareMetric=valuePerVisitor&goal=3&filters[device][]=mobile"`)
	narrowed := v.report("/v1/campaigns/12/results?compareMetric=valuePerVisitor&goal=3&filters[device][]=mobile")
	visitors := fmt.Sprintf(`document.querySelector("[aria-labelledby=variations] tfoot data")?.value === "%d"`, narrowed.Totals.Visitors)
	v.until(visitors)
	v.until(allThere)

	v.do(chromedp.Reload()) // the address is all that it needs
	v.until(visitors)
	v.until(allThere)
	v.click(`[aria-label="Remove Device mobile"]`)
	v.until(fmt.Sprintf(`document.querySelector("[aria-labelledby=variations] tfoot data")?.value === "%d"`, r.Totals.Visitors))
	v.do(chromedp.NavigateBack())
	v.until(visitors)
	v.choose(`[name=dateTo]`, "2001-01-01")
	v.shows("No visitors yet, or no visitors match the filters.")
	v.open("/?campaign=12&compareMetric=size&filters[country][]=nowhere")
	v.shows("compareMetric is size")
	v.shows("filters[country][]")
	v.open("/?campaign=99")
	v.shows("campaign 99 not found")
	v.openAll("/?campaign=12")
}

func (v *viewer) requestsCanBeTaken() {
	v.Helper()
	v.unfolds("[aria-labelledby=request]")
	v.click(`[aria-labelledby=request] details summary`)
	curl := evaluated[string](v, `document.querySelector("#curl").innerText`)
	want := v.server.url + "/v1/campaigns/12/results'"
	check.That(v, strings.HasSuffix(curl, want), "the request is %s, want one of %s and no token", curl, want)
	check.That(v, !strings.Contains(curl, "lh_"), "the request is %s, want one of %s and no token", curl, want)
	visitors := evaluated[string](v, `document.querySelector("#curl-visitors").innerText`)
	want = v.server.url + "/v1/campaigns/12/visitors.parquet'"
	check.That(v, strings.HasSuffix(visitors, want), "the request for the visitors is %s, want one of %s", visitors,
		want)

	folder := v.TempDir()
	must.Get(chromedp.CallBrowser(v.ctx, browser.SetDownloadBehavior,
		browser.SetDownloadBehaviorParams{Behavior: "allow", DownloadPath: folder}))(v)
	v.click("#csv")
	asked := func() bool {
		for _, request := range v.requests() {
			if accept, _ := request.Headers["Accept"].(string); strings.HasPrefix(accept, "text/csv") {
				return true
			}
		}
		return false
	}
	v.shows("Saved as campaigns-12-results.csv")
	check.That(v, asked(), "the page never asked for text/csv")
}

// refreshesInPlace checks that a refresh keeps the elements and the focus, changes only numbers, and sends 304 for
// unchanged data.
func (v *viewer) refreshesInPlace() {
	v.Helper()
	v.openAll("/?campaign=12")
	visitors := `document.querySelector("[aria-labelledby=variations] tfoot data")`
	v.unfolds(".settings details")
	was := evaluated[string](v, `(() => { const e = `+visitors+`; e.known = true; document.querySelector("[name=goal]").focus(); return e.value })()`)
	event := fmt.Sprintf(`{"eventId":"late","time":%d,"websiteId":1,"visitor":"late","event":"view","campaignId":12,"variationId":1}`, time.Now().UnixMilli())
	v.imports(event)
	v.until(fmt.Sprintf(`%s.value === String(%s + 1)`, visitors, was))
	check.That(v, evaluated[bool](v, visitors+`.known === true && document.activeElement.name === "goal"`), "the refresh replaced the table, or moved the focus")
	for _, request := range v.requests() {
		if _, conditional := request.Headers["If-None-Match"]; conditional && strings.HasSuffix(request.URL,
			"/v1/campaigns/12/results") {
			return
		}
	}
	v.Error("no look at the results says what the page has already")
}

func (v *viewer) stopsAndStarts() {
	v.Helper()
	v.click("#switch")
	v.shows("Stop “Free delivery banner”?")
	v.do(chromedp.KeyEvent("\x1b")) // Escape leaves it
	v.until(`!document.querySelector("dialog")`)
	v.shows("● running")
	v.click("#switch")
	v.click("#confirm")
	v.shows("■ stopped")
	v.click("#switch")
	v.shows("Start “Free delivery banner”?")
	v.click("#confirm")
	v.shows("● running")

	v.click(".top .sign-out")
	v.signIn(v.newToken("read"))
	v.until(allThere)
	check.That(v, !evaluated[bool](v, `document.querySelector("#switch") !== null`), "a token that may only read is offered to stop a campaign")
}

// failures checks that a revoked token leads to the sign-in, and that the page keeps its data with a notice if the
// server is away.
func (v *viewer) failures() {
	v.Helper()
	v.revokeLast()
	v.until(`document.querySelector(".sign-in")`)
	v.shows("the token is unknown, expired or revoked")
	v.signIn(v.token)
	v.until(allThere)
	v.server.interrupt()
	v.shows("The server does not respond.")
	v.shows("This page retries automatically")
	v.until(allThere)
}
