package e2e

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestTheDashboardExplainsAndExports opens the explanation of a term with the keyboard, saves the plot of the lifts,
// and looks at the page as it is printed.
func TestTheDashboardExplainsAndExports(t *testing.T) {
	v := newViewer(t)
	v.openSignedIn("/?campaign=12", allThere)
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
	call(v, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
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
