package api_test

import (
	_ "embed"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"lifthouse/schema"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

//go:embed testdata/odd.yaml
var oddShop string

// newOddServer has visitors of campaign 12 on devices with odd names. The device is that of the first view.
func newOddServer(t *testing.T) *server {
	t.Helper()
	s := newServer(t)
	s.apply(oddShop)
	var events []schema.Event
	for visitor := range 300 {
		name := fmt.Sprint("v", visitor)
		view := at(visitor, name, int64(visitor%2), schema.KindView, 0)
		view.Device = []string{"+phone", "tv", "", "tv"}[visitor%4]
		again := at(visitor+1, name, int64(visitor%2), schema.KindView, 0)
		again.Device = "later"
		events = append(events, view, again)
		if visitor%3 == 0 {
			events = append(events, at(visitor+90, name, int64(visitor%2), schema.KindGoal, -12_345))
		}
	}
	events = append(events, shown(0, "w", 0, 1, schema.KindView), shown(1, "w", 0, 1, schema.KindClick))
	must.OK(t, s.writer.WriteEvents(t.Context(), events))
	return s
}

// table parses a CSV response into a map per row.
func table(t *testing.T, text string) []map[string]string {
	t.Helper()
	records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	must.OK(t, err, "%.300s", text)
	rows := make([]map[string]string, len(records)-1)
	for i, record := range records[1:] {
		rows[i] = map[string]string{}
		for j, cell := range record {
			rows[i][records[0][j]] = cell
		}
	}
	return rows
}

// flat writes the values of a JSON object into a map by column name.
func flat(prefix string, value any, into map[string]string) {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			flat(strings.TrimPrefix(prefix+"."+name, "."), field, into)
		}
	case []any:
		if strings.HasSuffix(prefix, "easons") {
			into[prefix] = strings.Trim(fmt.Sprint(value), "[]")
			return
		}
		prefix = strings.TrimSuffix(prefix, ".interval")
		if !strings.Contains(prefix, "sequential") {
			prefix += ".interval"
		}
		flat(prefix+".lower", value[0], into)
		flat(prefix+".upper", value[1], into)
	case nil:
		into[prefix] = ""
	default:
		into[prefix] = fmt.Sprint(value)
	}
}

// TestCSVHasWhatTheJSONHas compares each field of each variation: of the whole report, of each value, and of each
// point.
func TestCSVHasWhatTheJSONHas(t *testing.T) {
	s := newOddServer(t)
	for path, name := range map[string]string{
		"/v1/campaigns/12/results?dimension=device&interval=hour": "campaign-12-results-dimension-device-interval-hour.csv",
		"/v1/campaigns/12/results?filters%5Bdevice%5D=nothing":    "campaign-12-results-device-nothing.csv",
		"/v1/widgets/7/results?interval=day":                      "widget-7-results-interval-day.csv",
	} {
		response := s.Get(path).Header("Accept", "text/csv").Send().RequireStatus(http.StatusOK)
		check.Equal(t, response.Header.Get("Content-Disposition"), `attachment; filename="`+name+`"`, path)
		check.Equal(t, response.Header.Get("Content-Type"), "text/csv; charset=utf-8", path)
		rows := table(t, response.Text)
		report := s.Get(path).Header("Accept", "application/json").Send().RequireStatus(http.StatusOK)
		decoder := json.NewDecoder(strings.NewReader(report.Text))
		decoder.UseNumber()
		var whole map[string]any
		must.OK(t, decoder.Decode(&whole))
		compare := func(in map[string]any, value, time string) {
			for _, v := range in["variations"].([]any) {
				must.That(t, len(rows) != 0, "%s: no row for %v", path, v)
				row := rows[0]
				rows = rows[1:]
				want := map[string]string{"breakdown.value": value, "series.time": time}
				flat("", v, want)
				for _, field := range []string{"campaignId", "goal", "dimension", "methodology", "dataThrough"} {
					flat(field, whole[field], want)
				}
				for name, wanted := range want {
					got, there := row[name]
					if wanted == "" && !there { // an object, or an interval
						for column, cell := range row {
							if strings.HasPrefix(column, name+".") && cell != "" &&
								!strings.HasSuffix(column, "eason") {
								t.Errorf("%s, %s: %s = %q, of what is null", path, row["name"], column, cell)
							}
						}
						continue
					}
					if strings.HasPrefix(got, "'") && strings.ContainsAny(got[1:2], "=+-@") {
						got = got[1:]
					}
					if !there || got != wanted {
						t.Errorf("%s, %s: %s = %q (%v), want %q", path, row["name"], name, got, there, wanted)
					}
				}
			}
		}
		compare(whole, "", "")
		breakdown, _ := whole["breakdown"].([]any)
		for _, slice := range breakdown {
			compare(slice.(map[string]any), slice.(map[string]any)["value"].(string), "")
		}
		points, _ := whole["series"].([]any)
		for _, point := range points {
			compare(point.(map[string]any), "", point.(map[string]any)["time"].(string))
		}
		check.Equal(t, len(rows), 0, "%s: further rows", path)
	}
}

// TestNoTextOfACSVIsAFormula checks that texts cannot be formulas, and that numbers are unchanged.
func TestNoTextOfACSVIsAFormula(t *testing.T) {
	s := newOddServer(t)
	request := s.Get("/v1/campaigns/12/results?dimension=device").Header("Accept", "text/csv")
	rows := table(t, request.Send().RequireStatus(http.StatusOK).Text)
	var values []string
	for _, row := range rows {
		values = append(values, row["breakdown.value"])
		if row["id"] == "1" && row["name"] != "'=1+1 <script>&" || row["goal.name"] != `'@home, "cheap"` {
			t.Errorf("variation %q, goal %q: want an apostrophe before", row["name"], row["goal.name"])
		}
	}
	check.That(t, slices.Contains(values, "'+phone"), "values %q, want '+phone", values)
	v := rows[0]["value"]
	check.That(t, strings.HasPrefix(v, "-"), "value %q, want a number below 0 as it is", v)
}

func TestForestPlotIsAPictureThatDoesNothing(t *testing.T) {
	s := newOddServer(t)
	for path, has := range map[string][]string{
		"/v1/campaigns/12/results":                             {"=1+1 &lt;script&gt;&amp;", "improvement", "valid for a single look"},
		"/v1/campaigns/12/results?dimension=device":            {"+phone", "(none)", "All visitors"},
		"/v1/widgets/7/results":                                {"-Plain", "goal conversion rate", "nothing is compared"},
		"/v1/campaigns/12/results?filters%5Bdevice%5D=nothing": {"=1+1", "not enough data", "–"},
	} {
		response := s.Get(path).Header("Accept", "image/svg+xml").Send().RequireStatus(http.StatusOK)
		text := response.Text
		check.Equal(t, response.Header.Get("Content-Security-Policy"), "sandbox", "%v", response)
		check.Equal(t, response.Header.Get("X-Content-Type-Options"), "nosniff", "%v", response)
		disposition := response.Header.Get("Content-Disposition")
		check.That(t, strings.HasPrefix(disposition, "inline; filename="), "%s: %s", path, disposition)
		check.Equal(t, response.Header.Get("Content-Type"), "image/svg+xml; charset=utf-8", "%v", response)
		decoder := xml.NewDecoder(strings.NewReader(text))
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			must.OK(t, err, "%v", path)
			start, ok := token.(xml.StartElement)
			check.That(t,
				!ok || slices.Contains([]string{"svg", "title", "rect", "text", "g", "line", "path", "circle"},
					start.Name.Local),
				"%s: has an element %s", path, start.Name.Local)
		}
		for _, part := range has {
			check.Contains(t, text, part, "%v", path)
		}
		check.That(t, !strings.Contains(text, "NaN"), "%s: draws a value that is not a number\n%s", path, text)
		check.That(t, !strings.Contains(text, "Inf"), "%s: draws a value that is not a number\n%s", path, text)
	}
}
