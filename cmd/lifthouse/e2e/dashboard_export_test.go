package e2e

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp/kb"
)

// TestTheDashboardExplainsAndExports opens the explanation of a term with the keyboard,
// saves the plot of the uplifts, and looks at the page as it is printed.
func TestTheDashboardExplainsAndExports(t *testing.T) {
	v := newViewer(t)
	v.open("/?campaign=12")
	v.signIn(v.token)
	v.until(allThere)
	evaluated[bool](v, `document.querySelector("[aria-label='What is “Split”?']").focus(), true`)
	v.press(kb.Enter)
	v.until(`document.querySelector(".trust .help-text:popover-open")?.innerText.includes("sample ratio mismatch")`)
	v.look("help")
	v.press(kb.Escape)
	v.until(`!document.querySelector(":popover-open")`)

	v.choose("[name=period]", "14")
	v.until(`document.querySelector("[name=dateFrom]").value === new Date(Date.now() - 14 * 864e5).toISOString().slice(0, 10)`)
	v.until(`document.querySelector("[name=dateTo]").value === new Date(Date.now() - 864e5).toISOString().slice(0, 10)`)
	v.shows("in Europe/Berlin")
	v.choose("[name=period]", "")
	v.until(`location.search === "?campaign=12"`)
	v.until(allThere)

	evaluated[bool](v, `(() => { const of = URL.createObjectURL; URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); return of(blob); }; return true })()`)
	v.click("#svg")
	v.until(`window.saved`)
	v.shows("Saved as campaigns-12-results.svg")
	if got := evaluated[int64](v, `new DOMParser().parseFromString(window.saved, "image/svg+xml").querySelectorAll("svg > svg circle").length`); got != 4 {
		t.Errorf("the plot has %d estimates, want those of 4 metrics", got)
	}

	call(v, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
	if evaluated[bool](v, `[...document.querySelectorAll("button, .controls, details")].some((e) => e.checkVisibility())`) {
		t.Error("a printed page has buttons or settings")
	}
	v.picture("print")
	if len(v.problems) > 0 {
		t.Errorf("the browser complains: %q", v.problems)
	}
}
