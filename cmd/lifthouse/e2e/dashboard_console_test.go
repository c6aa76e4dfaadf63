package e2e

import (
	"strconv"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"lifthouse/schema/schematest/check"
)

// secondShop adds another website to the account of the demo.
const secondShop = `      - id: 2
        domain: wine.example.com
        currency: USD
        goals: [{id: 90, name: Order}]
        campaigns:
          - id: 91
            name: Gift wrapping
            type: experiment
            primaryGoalId: 90
            owner: Bo
            controlShare: 50
            variations: [{id: 1, name: New, share: 50}]
`

// textsIntersect lists texts of a row of a table that overlap each other.
const textsIntersect = `[...document.querySelectorAll("main tr")].flatMap((row) => {
	const boxes = [...row.querySelectorAll("td, th")].flatMap((cell) => [...cell.querySelectorAll("a, b, small, span:not(.hidden)")])
		.filter((e) => e.checkVisibility() && !e.children.length).map((e) => [e.innerText, e.getBoundingClientRect()]);
	const meet = (x, y) => x.left < y.right - 1 && y.left < x.right - 1 && x.top < y.bottom - 1 && y.top < x.bottom - 1;
	return boxes.flatMap(([a, x], i) =>
		boxes.slice(i + 1).filter(([, y]) => meet(x, y)).map(([b]) => a + " | " + b));
})`

// TestTheDashboardsConsole shows all websites, goes to one, and finds a campaign of another one with the keyboard alone.
func TestTheDashboardsConsole(t *testing.T) {
	v := newViewer(t)
	const websites = "    websites:\n"
	v.changes(websites, websites+secondShop)
	v.openSignedIn("/", `document.querySelectorAll("[data-website]").length === 2`)
	v.until(`!document.body.innerText.includes("being computed")`)
	check.Contains(t, evaluated[string](v, `document.querySelector("main").innerText`), "decisions are due on 1 website.")
	due := evaluated[string](v, `document.querySelector('[data-website="1"] [data-label="To decide"]').innerText`)
	stake := evaluated[string](v, `document.querySelector('[data-website="1"] [data-label="At stake a month"] b').innerText`)
	check.That(t, stake != "", "nothing is at stake")
	v.look("console")
	for _, width := range []int64{1280, 1440, 1920} {
		v.sized(width, 900)
		for _, found := range evaluated[[]string](v, textsIntersect) {
			t.Errorf("at %d px, texts intersect: %s", width, found)
		}
	}
	v.pictures("console")
	v.click(`[data-website="1"] a`)
	v.until(statusesThere)
	check.Equal(t, evaluated[string](v, `document.querySelector(".group.decide .count").innerText`), due, "decisions in the list")
	v.choose(`.top [name=websiteId]`, "2")
	v.shows("Gift wrapping")

	v.open("/?campaign=12&websiteId=1")
	v.until(allThere)
	v.do(chromedp.KeyEvent("k", chromedp.KeyModifiers(2))) // Ctrl
	v.until(`document.querySelector("dialog [role=combobox]") === document.activeElement`)
	v.do(chromedp.KeyEvent("gift"))
	v.until(`document.querySelector("#found-0")?.innerText.startsWith("Gift wrapping")`)
	v.look("search")
	v.pictures("search")
	v.press(kb.ArrowDown) // to the last one and back
	v.press(kb.ArrowUp)
	v.press(kb.Enter)
	v.until(`location.search === "?campaign=91&websiteId=2" && document.querySelector("h1").innerText === "Gift wrapping"`)
	v.choose(`.top [name=websiteId]`, "")
	v.until(`document.querySelectorAll("[data-website]").length === 2`)
}

// TestTheDashboardOnAPhone measures where the answer, the worth and the first item of the list stand.
func TestTheDashboardOnAPhone(t *testing.T) {
	v := newSignedIn(t, "/?campaign=12")
	v.sized(390, 844)
	top := func(selector string) float64 {
		return evaluated[float64](v, `document.querySelector(`+strconv.Quote(selector)+`).getBoundingClientRect().top + scrollY`)
	}
	check.That(t, top(".conclusion") <= 200, "the answer stands at %.0f px", top(".conclusion"))
	check.That(t, top("dd.worth") <= 500, "the worth stands at %.0f px", top("dd.worth"))
	check.That(t, evaluated[bool](v, `!document.querySelector("#switch").checkVisibility()`), "the actions are open")
	v.click(".title .fold")
	v.until(`document.querySelector("#switch").checkVisibility()`)
	v.pictures("phone")
	v.open("/")
	v.until(statusesThere)
	v.sized(390, 844)
	check.That(t, top("[data-id]") <= 330, "the first item stands at %.0f px", top("[data-id]"))
	v.pictures("list")
	v.open("/?websiteId=1&view=programme")
	v.until(`document.querySelectorAll(".programme tbody tr").length === 19`)
	v.shows("Worth testing again")
	v.look("programme")
	v.pictures("programme")
}
