package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"

	"lifthouse/api/dashboard"
	"lifthouse/engine/opinion"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

const opinionFolder = "../../../api/dashboard/opinion"

// openOpinion opens the page from its folder, as anybody may publish it.
func openOpinion(t *testing.T) *viewer {
	t.Helper()
	v := openTab(t)
	out, err := exec.CommandContext(t.Context(), "bash", "../../../.ci/opinion").CombinedOutput()
	must.That(t, err == nil, "%v: %s", err, out)
	files := http.FileServer(http.Dir(opinionFolder))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", dashboard.Policies[dashboard.Opinion])
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	v.site = server.URL
	v.open("/")
	v.until(`globalThis.judgeTable`)
	return v
}

// tablesOfVectors returns the rates and the means of the reference vectors as tables.
func tablesOfVectors(t *testing.T) []string {
	t.Helper()
	content, err := os.ReadFile("../../../../shared/vectors/statistics.json")
	if err != nil {
		t.Log("the reference vectors are absent")
		return nil
	}
	type sums struct {
		N              int64
		Converted      *int64
		Mean, Variance float64
	}
	var file struct {
		Vectors []struct {
			Method string
			Input  json.RawMessage
		}
	}
	must.OK(t, json.Unmarshal(content, &file))
	const header = "name,control,treatment\n"
	rates, means := header, header
	for i, v := range file.Vectors {
		var in struct{ Control, Treatment sums }
		if json.Unmarshal(v.Input, &in) != nil || min(in.Control.N, in.Treatment.N) < 2 {
			continue
		}
		if c, x := in.Control, in.Treatment; c.Converted != nil {
			rates += fmt.Sprintf("%d,%d/%d,%d/%d\n", i, *c.Converted, c.N, *x.Converted, x.N)
		} else {
			number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
			means += fmt.Sprintf("%d,%d:%s:%s,%d:%s:%s\n", i, c.N, number(c.Mean), number(c.Variance), x.N,
				number(x.Mean), number(x.Variance))
		}
	}
	return []string{rates, means}
}

// largeTable returns a table of 200 tests.
func largeTable() string {
	r := rand.New(rand.NewPCG(1, 2))
	text := "name,control,B,days,shipped\n"
	for i := range 200 {
		n := 5000 + r.Int64N(20000)
		text += fmt.Sprintf("Test %d,%d/%d,%d/%d,28,%s\n", i, n/20+r.Int64N(100), n, n/20+r.Int64N(150), n+r.Int64N(100), []string{"no", "yes"}[r.IntN(2)])
	}
	return text
}

// TestTheOpinionInABrowserEqualsTheProgram compares all numbers of opinions. Texts are equal. Numbers may differ in their
// last bits, because the exponential function of Go has other instructions on amd64.
func TestTheOpinionInABrowserEqualsTheProgram(t *testing.T) {
	v := openOpinion(t)
	tables := append(tablesOfVectors(t), largeTable())
	for _, name := range must.Get(filepath.Glob("../../../engine/opinion/testdata/*.*sv"))(t) {
		tables = append(tables, string(must.Get(os.ReadFile(name))(t)))
	}
	numbers, unequal, worst := 0, 0, 0.0
	for i, table := range tables {
		want := must.Get(json.Marshal(opinion.New(must.Get(opinion.ReadTable(strings.NewReader(table)))(t), .2)))(t)
		ours := must.JSON[any](t, want)
		theirs := must.JSON[struct{ Opinion any }](t, evaluated[string](v, "judgeTable("+strconv.Quote(table)+", 0.2)"))
		var compare func(path string, a, b any)
		compare = func(path string, a, b any) {
			switch a := a.(type) {
			case map[string]any:
				other, _ := b.(map[string]any)
				check.Equal(t, len(other), len(a), "%s", path)
				for key := range a {
					compare(path+"."+key, a[key], other[key])
				}
			case []any:
				other, _ := b.([]any)
				check.Equal(t, len(other), len(a), "%s", path)
				for k := range min(len(a), len(other)) {
					compare(fmt.Sprintf("%s[%d]", path, k), a[k], other[k])
				}
			case float64:
				other, _ := b.(float64)
				if numbers++; a != other {
					off := math.Abs(a - other)
					if unequal++; off > 1e-14 { // smaller ones are zeros
						off /= math.Abs(a)
						worst = max(worst, off)
					}
					check.That(t, off < 1e-10, "table %d%s: %v, and in the browser %v", i, path, a, other)
				}
			default:
				check.That(t, reflect.DeepEqual(a, b), "table %d%s: %v, and in the browser %v", i, path, a, b)
			}
		}
		compare("", ours, theirs.Opinion)
	}
	t.Logf("%d tables, %d numbers, %d differ, by at most %.2g", len(tables), numbers, unequal, worst)
}

// TestTheOpinionPage pastes, shares and saves tables, and looks at the page.
func TestTheOpinionPage(t *testing.T) {
	v := openOpinion(t)
	asked := len(v.requests())
	judge := func(text string) {
		t.Helper()
		evaluated[bool](v, `document.getElementById("table").value = `+strconv.Quote(text)+`, true`)
		v.click("#run")
		v.until(`document.getElementById("status").textContent === "" && !document.getElementById("answer").hidden`)
	}
	v.look("opinion-empty")
	v.click("#example")
	v.shows("You reported +")
	v.shows("Expect ")
	v.look("opinion")
	v.sized(390, 800)
	v.picture("opinion-390")
	v.sized(1440, 900)

	// Hostile tables.
	judge("test,variation,visitors,conversions\n<img src=x onerror=alert(1)>,<b>A</b>,1000,50\n<img src=x onerror=alert(1)>,=1+1,1000,80\n")
	v.shows("<img src=x onerror=alert(1)>")
	check.That(t, !evaluated[bool](v, `Boolean(document.querySelector("#answer img, #answer b:not([class]):not(.key b)"))`), "a name has become HTML")
	judge("test,variation,visitors,conversions\nA,x,1e308,NaN\nA,y,=1+1,5\n")
	v.shows(`line 2: conversions: "NaN": is not a number`)
	v.shows(`line 3: visitors: "=1+1": is not a number`)
	v.look("opinion-refused")
	evaluated[bool](v, `document.getElementById("table").value = "x".repeat(1e7), true`)
	v.click("#run")
	v.shows("must have at most 5242880 bytes")
	judge("name,A,B\nlarge,10000:1e308:1e308,10000:-1e308:1\n")
	v.shows("Nothing can be expected")

	// The link has the table, and no request has anything.
	judge(largeTable())
	v.click("#answer .buttons button")
	v.until(`location.hash.length > 100`)
	link := evaluated[string](v, `location.href`)
	after := addressesOf(v.requests()[asked:])
	check.That(t, len(after) == 0, "after loading, the page asked %v", after)
	check.That(t, !evaluated[bool](v, `fetch("/opinion/opinion.js").then(() => true, () => false)`), "the policy allows a connection")
	v.problems = nil // the refused connection
	v.open("/#x")    // another page
	v.site = ""
	v.open("about:blank")
	v.open(link)
	v.until(`document.querySelectorAll("ol.tests > li").length === 200`)
	t.Logf("%.0f ms from the start to the first paint, %.0f ms to the verdict on 200 tests", evaluated[float64](v, `performance.getEntriesByName("first-contentful-paint")[0].startTime`),
		evaluated[float64](v, `performance.getEntriesByName("verdict")[0].startTime`))
	v.picture("opinion-200")
}

func addressesOf(requests []*network.Request) (all []string) {
	for _, r := range requests {
		if !strings.HasSuffix(r.URL, "/icon.svg") { // of the browser
			all = append(all, r.URL)
		}
	}
	return all
}
