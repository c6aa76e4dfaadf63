package e2e

import (
	"fmt"
	"testing"

	"lifthouse/schema/schematest/check"
)

// measureStory measures a page: its height, its visible question marks, its headings of the first level, and the lifts
// and intervals that the first screen prints more than once. The labels of axes are drawings and do not count.
const measureStory = `(() => {
	const shown = (e) => e.checkVisibility({ visibilityProperty: true }) && !e.closest("svg, .hidden");
	const texts = document.createTreeWalker(document.getElementById("main"), NodeFilter.SHOW_TEXT), found = {};
	let first = "";
	while (texts.nextNode()) {
		const e = texts.currentNode.parentElement;
		if (shown(e) && e.getBoundingClientRect().top < innerHeight) first += texts.currentNode.data + "\n";
	}
	for (const [fact] of first.matchAll(/[+-][\d.,∞]+(\s%)? to [+-][\d.,∞]+(\s%)?|[+-][\d.,]+\s%/g)) found[fact] = (found[fact] ?? 0) + 1;
	return {
		Height: document.documentElement.scrollHeight,
		Marks: [...document.querySelectorAll("button.help")].filter(shown).length,
		Headings: [...document.querySelectorAll("h1")].filter(shown).length,
		Facts: Object.keys(found).length,
		Repeated: Object.keys(found).filter((fact) => found[fact] > 1),
	};
})()`

// story is what measureStory returns.
type story struct {
	Height, Marks, Headings, Facts int
	Repeated                       []string
}

// TestTheDashboardTellsOneStory bounds the height and the question marks of a campaign, and checks that its first
// screen prints no lift and no interval twice.
func TestTheDashboardTellsOneStory(t *testing.T) {
	v := newViewer(t)
	v.openSignedIn("/?campaign=12", allThere)
	for _, screen := range []struct {
		width, height int64
		highest       int
	}{{1440, 900, 2000}, {1024, 900, 4000}, {390, 844, 4000}} {
		v.sized(screen.width, screen.height)
		for _, campaign := range []int{12, 13, 14, 15, 16, 17, 18} {
			v.open(fmt.Sprintf("/?campaign=%d", campaign))
			v.until(allThere)
			measured := evaluated[story](v, measureStory)
			t.Logf("campaign %d at %d px: %+v", campaign, screen.width, measured)
			check.That(t, campaign != 12 || measured.Height <= screen.highest, "at %d px, the page is %d px high, want at most %d", screen.width, measured.Height, screen.highest)
			check.That(t, measured.Marks <= 12 && len(measured.Repeated) == 0 && measured.Headings == 1,
				"campaign %d at %d px has %d question marks, %d headings of the first level and repeats %q", campaign, screen.width, measured.Marks, measured.Headings, measured.Repeated)
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
