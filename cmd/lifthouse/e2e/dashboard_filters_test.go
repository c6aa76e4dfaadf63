package e2e

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"lifthouse/engine"
	"lifthouse/engine/facts"
	"lifthouse/engine/result"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestTheDashboardsFiltersArePickedFromWhatThereIs selects observed values as filters. The URL, every request, the page
// and the CSV must agree with the API.
func TestTheDashboardsFiltersArePickedFromWhatThereIs(t *testing.T) {
	v := newViewer(t)
	v.open("/?campaign=12")
	v.signIn(v.token)
	for _, subject := range []struct{ page, path, rate string }{
		{"/?widget=7&experiment=2", "/v1/widgets/7/experiments/2", "%.1f %%"},
		{"/?campaign=12", "/v1/campaigns/12", "%.2f %%"},
	} {
		v.openAll(subject.page)
		whole := v.report(subject.path + "/results").Totals.Visitors
		v.unfolds(".settings details")
		v.picks(subject.path, "device", "mobile", "desktop")
		v.picks(subject.path, "visitorType", "new")
		const filters = "filters[device][]=mobile&filters[device][]=desktop&filters[visitorType]=new"
		v.until(fmt.Sprintf("decodeURIComponent(location.search) === %q", subject.page[1:]+"&"+filters))
		narrowed := v.report(subject.path + "/results?" + filters)
		n := narrowed.Totals.Visitors
		must.That(t, n != 0, "the filters let %d of %d visitors through", n, whole)
		must.That(t, n < whole, "the filters let %d of %d visitors through", n, whole)
		v.until(fmt.Sprintf(`document.querySelector("[aria-labelledby=variations] tfoot data")?.value === "%d"`, narrowed.Totals.Visitors))
		v.until(allThere)
		v.numbersAreTheAPIs(subject.path+"/results?"+filters, subject.rate)
		v.savesTheSame(subject.path+"/results?"+filters, &narrowed)
	}
}

// picks adds filters of an attribute. The page must show the number of visitors of each value.
func (v *viewer) picks(path, attribute string, values ...string) {
	v.Helper()
	var observed engine.Values
	v.server.get(path+"/dimensions/"+attribute, v.token, &observed)
	v.choose(".filter [name=by]", attribute)
	for _, value := range values {
		at := slices.IndexFunc(observed.Values, func(o facts.Value) bool { return o.Value == value })
		must.That(v, at >= 0, "%s is never %s: %v", attribute, value, observed.Values)
		option := fmt.Sprintf(".filter [name=value] [value=%s]", value)
		v.until(fmt.Sprintf("document.querySelector(%q)", option))
		want := fmt.Sprintf("%s (%s)", value, thousands(observed.Values[at].Visitors))
		check.Equal(v, evaluated[string](v, fmt.Sprintf("document.querySelector(%q).textContent", option)), want,
			"the page offers")
		v.until(`document.querySelector(".results").ariaBusy !== "true"`) // the answer above may change its height
		v.choose(".filter [name=value]", value)
		v.click(".filter button")
		v.until(fmt.Sprintf(`[...document.querySelectorAll(".chips li")].some((e) => e.innerText.includes(%q))`, value))
	}
}

// savesTheSame downloads the view as CSV and compares visitors and metrics with the report.
func (v *viewer) savesTheSame(address string, r *result.Report) {
	v.Helper()
	rows := v.download()
	asked := false
	for _, request := range v.requests() {
		accept, _ := request.Headers["Accept"].(string)
		asked = asked || strings.HasPrefix(accept, "text/csv") && request.URL == v.site+address
	}
	check.That(v, asked, "the page never asked %s for text/csv", address)
	must.That(v, len(rows) == 1+len(r.Variations), "the CSV has %d rows, want a head and %d variations", len(rows),
		len(r.Variations))
	cell := func(row []string, name string) string { return row[slices.Index(rows[0], name)] }
	for i, variation := range r.Variations {
		want := compared(r, i)
		check.Equal(v, cell(rows[i+1], "visitors"), strconv.FormatInt(variation.Visitors, 10),
			"visitors of %s in the CSV", variation.Name)
		got := cell(rows[i+1], fmt.Sprintf("metrics.%s.value", *r.CompareMetric))
		check.That(v, same(got, want), "%s has a rate of %s in the CSV, the API has %v", variation.Name, got, want)
	}
}

// download clicks on CSV and waits until the download is complete.
func (v *viewer) download() [][]string {
	v.Helper()
	folder, saved := v.TempDir(), make(chan string, 1)
	begun := ""
	must.OK(v, chromedp.ListenBrowser(v.ctx, func(event any) {
		switch e := event.(type) {
		case *browser.EventDownloadWillBegin:
			begun = e.SuggestedFilename
		case *browser.EventDownloadProgress:
			if e.State == browser.DownloadProgressStateCompleted {
				saved <- begun
			}
		}
	}))
	behaviour := browser.SetDownloadBehaviorParams{
		Behavior: "allow", DownloadPath: folder,
		BrowserContextID: chromedp.FromContext(v.ctx).BrowserContextID, EventsEnabled: new(true),
	}
	must.Get(chromedp.CallBrowser(v.ctx, browser.SetDownloadBehavior, behaviour))(v)
	v.unfolds("[aria-labelledby=request]")
	v.click("#csv")
	var name string
	select {
	case name = <-saved:
	case <-v.ctx.Done():
		v.Fatal("the CSV was never saved")
	}
	file := must.Get(os.Open(filepath.Join(folder, name)))(v)
	defer func() { _ = file.Close() }()
	return must.Get(csv.NewReader(file).ReadAll())(v)
}
