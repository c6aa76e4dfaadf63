package e2e

import (
	"fmt"
	"testing"

	"lifthouse/schema/schematest/check"
)

// TestTheDashboardsPictures compares the pictures that are closed at first with the API, by their tables.
func TestTheDashboardsPictures(t *testing.T) {
	v := newViewer(t)
	v.openSignedIn("/?campaign=12", allThere)
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
