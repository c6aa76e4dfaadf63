package e2e

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"lifthouse/engine/result"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// answered is true if the box has an answer, and the page loads nothing.
const answered = `document.querySelector("#asked") && !document.querySelector(".loading, [aria-busy=true]")`

// bySplit is a question in canonical form, of which the demo's Shoes hold.
const bySplit = "converted(purchase) split items.category"

// ask opens a page of campaign 12 with a question.
func (v *viewer) ask(question string) {
	v.Helper()
	v.open("/?campaign=12&ask=" + url.QueryEscape(question))
	v.until(answered)
}

// splitReport returns the answer of the API to bySplit.
func (v *viewer) splitReport() result.Report {
	v.Helper()
	return v.report("/v1/campaigns/12/results?metric=converted(purchase)&split=items.category")
}

// focusBox waits for the box, and focuses it.
func (v *viewer) focusBox() {
	v.Helper()
	v.until(`document.querySelector("#ask-line")`)
	evaluated[bool](v, `(document.querySelector("#ask-line").focus(), true)`)
}

// TestTheBoxIsAskedByKeyboard writes a question with the keyboard alone, by its completion, and compares the answer with
// the API. The address has the canonical text, so it shows the same answer, and the browser keeps the question.
func TestTheBoxIsAskedByKeyboard(t *testing.T) {
	v := newSignedIn(t, "/?campaign=12")
	v.focusBox()
	offered := func(text string) {
		v.until(fmt.Sprintf(`[...document.querySelectorAll("#offers li")].some((e) => e.firstChild.data === %q)`, text))
	}
	v.press("conv")
	offered("converted")
	v.press(kb.ArrowDown)
	v.until(`document.querySelector("#ask-line").getAttribute("aria-activedescendant") === "offer-0"`)
	v.press(kb.Enter)
	offered("purchase")
	v.until(`document.querySelector("#ask-line").value === "converted("`)
	v.press("purchase)  split items.cat")
	offered("category")
	v.picture("ask-completion")
	v.press(kb.ArrowDown)
	v.press(kb.Enter)
	v.press(kb.Escape)
	v.until(`document.querySelector("#ask-line").value === "converted(purchase)  split items.category"`)
	v.press(kb.Enter)
	v.until(answered)
	v.until(fmt.Sprintf(`new URLSearchParams(location.search).get("ask") === %q`, bySplit))
	v.splitIsTheAPIs()
	v.look("ask")

	v.do(chromedp.Reload()) // the address is all that it needs
	v.until(answered)
	v.splitIsTheAPIs()
	v.openAll("/?campaign=12")
	v.focusBox()
	v.press(kb.ArrowDown)
	offered(bySplit)
}

// splitIsTheAPIs compares the answer to bySplit with the API: the numbers, and whether each part holds.
func (v *viewer) splitIsTheAPIs() {
	v.Helper()
	r := v.splitReport()
	const rows = `document.querySelectorAll("[aria-labelledby=asked] tbody tr")`
	v.until(fmt.Sprintf(rows+`.length === %d`, len(r.Parts.Items)))
	words := map[string]int{}
	for _, item := range r.Parts.Items {
		control, own := item.Variations[0], item.Variations[1]
		row := fmt.Sprintf("[aria-labelledby=asked] [data-value=%s]", item.Value)
		v.rowIs(row, float64(own.Metric.Visitors), float64(control.Metric.Visitors), *control.Metric.Value,
			*own.Metric.Value, *own.Comparison.Improvement.Value)
		want := own.Comparison.Evidence.InWords()
		word, _, _ := strings.Cut(want, ":")
		words[word]++
		read := fmt.Sprintf(`(() => { const e = document.querySelector(%q), why = document.getElementById(e.getAttribute("popovertarget")).querySelector(".why"); return e.textContent + ": " + why.textContent })()`, row+" .evidence")
		check.Equal(v, evaluated[string](v, read), want, "evidence of %s", item.Value)
	}
	check.Equal(v, words["Holds"], 1, "parts that hold")
	check.Equal(v, words["Describes"], len(r.Parts.Items)-1, "parts that describe")
	v.shows("The parts do not add up to the metric")
}

// TestTheBoxShowsItsErrors checks that an error is marked under its character, and that the link shows it, too.
func TestTheBoxShowsItsErrors(t *testing.T) {
	v := newSignedIn(t, "/?campaign=12")
	v.focusBox()
	const line = "converted(purchase) for devce = 'mobile'"
	v.press(line)
	v.press(kb.Escape)
	v.press(kb.Enter)
	const marked = `document.querySelector(".marked mark")`
	v.until(marked)
	check.Equal(t, evaluated[int](v, `Number(`+marked+`.dataset.at)`), strings.Index(line, "devce")+1, "character")
	check.Equal(t, evaluated[string](v, marked+`.textContent`), "d", "marked text")
	v.shows(`Character 25: unknown attribute "devce": device`)
	check.Equal(t, evaluated[string](v, `document.activeElement.id`), "ask-line", "focused element")
	v.look("ask-error")
	v.do(chromedp.Reload())
	v.until(marked)
}

// TestTheBoxAnswersRatios compares the value, the numerator and the denominator of a ratio with the API.
func TestTheBoxAnswersRatios(t *testing.T) {
	v := newSignedIn(t, "/?campaign=12")
	v.ask("sum(purchase.items.revenue)/count(purchase) for device='mobile'")
	const canonical = "sum(purchase.items.revenue) / count(purchase) for device = 'mobile'"
	v.until(fmt.Sprintf(`new URLSearchParams(location.search).get("ask") === %q`, canonical))
	v.shows("money in EUR")
	query := url.Values{"metric": {"sum(purchase.items.revenue) / count(purchase)"}, "visitors": {"device = 'mobile'"}}
	r := v.report("/v1/campaigns/12/results?" + query.Encode())
	check.Equal(t, evaluated[string](v, `document.querySelector("#asked").firstChild.data`), r.Question.Name, "name")
	v.unfolds(".sums")
	for _, of := range r.Variations {
		values, _ := v.row(fmt.Sprintf(`[data-sums="%d"]`, of.ID))
		want := []string{of.Metric.Numerator.String(), of.Metric.Denominator.String(), fmt.Sprint(of.Visitors)}
		check.Equal(t, strings.Join(values, " "), strings.Join(want, " "), "sums of %s", of.Name)
	}
	v.look("ask-ratio")
}

// TestThePageShowsProducts compares the buyers and the lift of each product with the API.
func TestThePageShowsProducts(t *testing.T) {
	v := newSignedIn(t, "/?campaign=12")
	v.until(`document.querySelector("#products")`)
	v.click("[aria-labelledby=products] summary")
	r := v.report("/v1/campaigns/12/results?metric=converted(purchase)&split=items.product&top=20")
	v.until(fmt.Sprintf(`document.querySelectorAll("[data-product]").length === %d`, len(r.Parts.Items)))
	shown := evaluated[[]string](v, `[...document.querySelectorAll("[data-product]")].map((e) => e.dataset.product)`)
	for i, item := range r.Parts.Items {
		check.Equal(t, shown[i], item.Value, "product %d", i)
		row := fmt.Sprintf("[data-product=%q]", item.Value)
		control, own := item.Variations[0], item.Variations[1]
		v.rowIs(row, float64(own.Metric.Visitors), float64(control.Metric.Visitors))
		values, _ := v.row(row)
		must.That(t, len(values) > 8, "%s has the numbers %q", item.Value, values)
		check.That(t, same(values[8], *own.Comparison.Improvement.Value), "lift of %s is %s", item.Value, values[8])
		label := evaluated[string](v, fmt.Sprintf(`document.querySelector(%q).firstChild.data`, row+" th"))
		check.Equal(t, label, item.Label, "label of %s", item.Value)
	}
	v.look("products")
}

// TestFiltersOfThePageWriteConditions adds what is not, and a value of an own attribute, and breaks down by two
// attributes. The filters are in the address, and the breakdown is the API's.
func TestFiltersOfThePageWriteConditions(t *testing.T) {
	v := newSignedIn(t, "/?campaign=12")
	v.unfolds(".settings details")
	v.choose(".filter [name=comparison]", "true")
	v.choose(".filter [name=value]", "mobile")
	v.click(".filter button")
	v.shows("Device: not mobile")
	v.until(allThere)
	v.choose(".filter [name=by]", "membership")
	v.until(`document.querySelector(".filter [name=value] [value=member]")`)
	v.choose(".filter [name=value]", "member")
	v.click(".filter button")
	v.shows("membership: member")
	const condition = "device != 'mobile' and membership = 'member'"
	v.until(fmt.Sprintf(`new URLSearchParams(location.search).get("visitors") === %q`, condition))
	query := url.Values{"visitors": {condition}}
	whole := v.report("/v1/campaigns/12/results?" + query.Encode())
	v.until(fmt.Sprintf(`document.querySelector("[aria-labelledby=variations] tfoot data")?.value === "%d"`,
		whole.Totals.Visitors))
	word, _, _ := strings.Cut(whole.Variations[1].Comparison.Evidence.InWords(), ":")
	v.until(fmt.Sprintf(`document.querySelector("#conclusion").innerText.endsWith("· %s")`, word))
	v.look("conditions")
	v.click(`[aria-label="Remove Device not mobile"]`)
	v.until(`new URLSearchParams(location.search).get("visitors") === "membership = 'member'"`)

	v.openAll("/?campaign=12&dimension=device")
	v.choose("[name=dimension2]", "membership")
	v.until(`document.querySelector('[data-value="mobile · guest"]')`)
	r := v.report("/v1/campaigns/12/results?dimension=device,membership")
	check.Equal(t, evaluated[int](v, `document.querySelectorAll(".segments tbody tr").length`), len(r.Breakdown), "rows")
	v.look("pairs")
}
