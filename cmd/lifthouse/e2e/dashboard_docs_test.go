package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"lifthouse/schema/schematest/check"
)

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
		check.That(t, strings.HasPrefix(request.URL, v.site) || strings.HasPrefix(request.URL, "data:") || strings.HasPrefix(request.URL, "blob:"),
			"the page loads %s", request.URL)
	}
}
