package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// entries is true if the page shows entries of the log.
const entries = `document.querySelectorAll(".log > li").length > 0 && !document.querySelector(".log[aria-busy=true]")`

// newest is the text of the latest entry of the page.
const newest = `document.querySelector(".log > li").innerText`

// pictures takes pictures of the page in more widths and both themes, if the directory of pictures is set.
func (v *viewer) pictures(name string) {
	v.Helper()
	if os.Getenv("SCREENS") == "" {
		return
	}
	for _, theme := range []string{"light", "dark"} {
		v.themed(theme)
		for _, width := range []int64{390, 1280, 1920} {
			v.sized(width, 900)
			v.picture(fmt.Sprintf("%s-%d-%s", name, width, theme))
		}
	}
	v.themed("light")
	v.sized(1280, 900)
}

// TestTheDashboardsLog adds a note and an annotation, sees them in the log, on the chart and in its table, and withdraws
// one. The log of the website has both.
func TestTheDashboardsLog(t *testing.T) {
	v := newSignedIn(t, "/?campaign=12")
	v.unfolds(".part:has(#log)")
	v.until(entries)
	v.enter(`.writing [name=text]`, "Price of the <b>bundle</b> raised")
	day := time.Now().UTC().AddDate(0, 0, -4).Format(time.DateOnly)
	v.choose(`.writing [name=date]`, day)
	v.click(`.writing button`)
	v.shows("Added to the log and to the charts.")
	v.until(newest + `.includes("Price of the <b>bundle</b> raised")`)
	check.Contains(t, evaluated[string](v, newest), day, "the day of the annotation")
	v.enter(`.writing [name=text]`, "Support was asked")
	v.click(`.writing button`)
	v.until(newest + `.includes("Support was asked")`)
	code, _, complaints := other(t, nil, "note", "The shop was down",
		"--from", day+"T09:00:00Z", "--to", day+"T12:00:00Z", "--website", "1", v.store)
	must.That(t, code == exitOK, "exit %d, %s", code, complaints)

	v.open("/?campaign=12")
	v.until(`document.querySelectorAll(".annotations .letter").length === 2`)
	v.click(".annotations .letter:nth-of-type(1)")
	v.until(`document.querySelector(".lettered .chosen")`)
	letters := evaluated[string](v, `[...document.querySelectorAll(".lettered li")].map((e) => e.innerText).join("|")`)
	check.Contains(t, letters, "A "+day+" Price of the <b>bundle</b> raised", "the list below the chart")
	check.Contains(t, letters, "B "+day+" 09:00 to 12:00 UTC The shop was down", "the list below the chart")
	v.unfolds(".overtime figure details")
	table := evaluated[string](v, `[...document.querySelectorAll(".overtime tr[data-time]")].map((e) => e.lastElementChild.innerText).filter(Boolean).join("|")`)
	check.Equal(t, table, "A B", "the rows of the data table with annotations")
	v.look("annotations")
	v.pictures("annotations")

	v.unfolds(".part:has(#log)")
	v.until(entries)
	v.pictures("log-of-a-campaign")
	v.click(".log button.link")
	v.until(`document.querySelector(".log .withdrawn")`)
	v.open("/?websiteId=1&view=log")
	v.until(entries)
	check.Contains(t, evaluated[string](v, `document.querySelector(".log").innerText`), "All of ", "entries about the website")
	shown := evaluated[int](v, `document.querySelectorAll(".log > li").length`)
	check.That(t, shown <= 50, "%s entries at first", strconv.Itoa(shown))
	v.look("log")
	v.pictures("log")
	v.choose(`.choices select`, "annotation")
	v.until(`document.querySelectorAll(".log > li").length === 2`)
	for _, f := range []string{"log.js", "annotations.js"} {
		loaded := 0
		for _, request := range v.requests() {
			if strings.HasSuffix(request.URL, "/dashboard/"+f) {
				loaded++
			}
		}
		check.That(t, loaded > 0, "%s was not loaded", f)
	}
}
