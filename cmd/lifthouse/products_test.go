package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// action is a view of campaign 12 or an order.
type action struct {
	visitor, id string // without an id, each action counts
	at          time.Time
	view        bool
	variation   int
	value       float64
}

// counted counts actions in the simplest way. It returns visitors/converted/value of each
// variation, without the visitors of several variations.
func counted(actions []action) string {
	variation, since := map[string]int{}, map[string]time.Time{}
	for _, a := range actions {
		if !a.view {
			continue
		}
		if before, seen := variation[a.visitor]; seen && before != a.variation {
			a.variation = -1
		}
		variation[a.visitor] = a.variation
		if first, seen := since[a.visitor]; !seen || a.at.Before(first) {
			since[a.visitor] = a.at
		}
	}
	var text []string
	for v := range 2 {
		visitors, value, ids, converted := 0, 0.0, map[string]bool{}, map[string]bool{}
		for _, shown := range variation {
			if shown == v {
				visitors++
			}
		}
		for _, a := range actions {
			first, seen := since[a.visitor]
			if a.view || !seen || variation[a.visitor] != v || a.at.Before(first) || a.id != "" && ids[a.id] {
				continue
			}
			ids[a.id], converted[a.visitor] = true, true
			value += a.value
		}
		text = append(text, fmt.Sprintf("%d/%d/%s", visitors, len(converted), strconv.FormatFloat(math.Round(value*100)/100, 'f', -1, 64)))
	}
	return strings.Join(text, " ")
}

// records returns the rows of a CSV file by their columns.
func records(t *testing.T, path string) []map[string]string {
	t.Helper()
	rows := must.Get(csv.NewReader(bytes.NewReader(must.Get(os.ReadFile(path))(t))).ReadAll())(t)
	var found []map[string]string
	for _, row := range rows[1:] {
		record := map[string]string{}
		for i, name := range rows[0] {
			record[name] = row[i]
		}
		found = append(found, record)
	}
	return found
}

// jsonLinesOf decodes the lines of a file.
func jsonLinesOf[T any](t *testing.T, path string) []T {
	t.Helper()
	var found []T
	for line := range bytes.Lines(must.Get(os.ReadFile(path))(t)) {
		var v T
		must.OK(t, json.Unmarshal(line, &v))
		found = append(found, v)
	}
	return found
}

// ga4Event is a row of the BigQuery export of GA4.
type ga4Event struct {
	Timestamp int64  `json:"event_timestamp,string" parquet:"event_timestamp"`
	Name      string `json:"event_name" parquet:"event_name"`
	Params    []struct {
		Key   string `json:"key" parquet:"key,optional"`
		Value struct {
			String *string  `json:"string_value" parquet:"string_value,optional"`
			Int    *int64   `json:"int_value,string" parquet:"int_value,optional"`
			Double *float64 `json:"double_value" parquet:"double_value,optional"`
		} `json:"value" parquet:"value,optional"`
	} `json:"event_params" parquet:"event_params,list"`
	Visitor string `json:"user_pseudo_id" parquet:"user_pseudo_id"`
	Device  struct {
		Category string `json:"category" parquet:"category,optional"`
		System   string `json:"operating_system" parquet:"operating_system,optional"`
		Web      struct {
			Browser string `json:"browser" parquet:"browser,optional"`
		} `json:"web_info" parquet:"web_info,optional"`
	} `json:"device" parquet:"device,optional"`
	Geo struct {
		Country string `json:"country" parquet:"country,optional"`
	} `json:"geo" parquet:"geo,optional"`
	Source struct {
		Source string `json:"source" parquet:"source,optional"`
		Medium string `json:"medium" parquet:"medium,optional"`
	} `json:"traffic_source" parquet:"traffic_source,optional"`
	Ecommerce struct {
		Transaction *string `json:"transaction_id" parquet:"transaction_id,optional"`
		Revenue     float64 `json:"purchase_revenue" parquet:"purchase_revenue,optional"`
	} `json:"ecommerce" parquet:"ecommerce,optional"`
}

func (e *ga4Event) param(key string) string {
	for _, p := range e.Params {
		switch {
		case p.Key != key:
		case p.Value.String != nil:
			return *p.Value.String
		case p.Value.Int != nil:
			return strconv.FormatInt(*p.Value.Int, 10)
		}
	}
	return ""
}

func ga4Actions(t *testing.T, events []ga4Event) []action {
	t.Helper()
	var actions []action
	for _, e := range events {
		a := action{visitor: e.Visitor, at: time.UnixMicro(e.Timestamp), value: e.Ecommerce.Revenue}
		switch {
		case e.Name == "experiment_viewed" && e.param("experiment_id") == "checkout-layout":
			a.view, a.variation = true, must.Get(strconv.Atoi(e.param("variation_id")))(t)
		case e.Name == "purchase":
			a.id = *e.Ecommerce.Transaction
		default:
			continue
		}
		actions = append(actions, a)
	}
	return actions
}

// trackActions returns the actions of track calls of Segment and RudderStack.
func trackActions(t *testing.T, id, event, visitor, at, experiment, variation, revenue string) []action {
	t.Helper()
	layout := "2006-01-02 15:04:05 MST"
	if strings.Contains(at, "T") && !strings.HasSuffix(at, "UTC") {
		layout = time.RFC3339
	}
	a := action{id: id, visitor: visitor, at: must.Get(time.Parse(layout, at))(t)}
	switch {
	case event == "Experiment Viewed" && experiment == "checkout-layout":
		a.view, a.variation = true, must.Get(strconv.Atoi(variation))(t)
	case event == "Order Completed":
		a.value = must.Get(strconv.ParseFloat(revenue, 64))(t)
	default:
		return nil
	}
	return []action{a}
}

// imported returns the report after an import of files with their mappings.
func imported(t *testing.T, rejected string, files ...[2]string) (*house, string) {
	t.Helper()
	h := newHouse(t)
	h.must("apply", "-f", "testdata/exports.catalog.yaml")
	for _, file := range files {
		if out := h.must("import", "-m", file[1], file[0]); !strings.Contains(out, rejected) {
			t.Errorf("%s: %s; want %q", file[0], out, rejected)
		}
	}
	return h, h.reported("campaign", "12")
}

func TestExportsOfGA4(t *testing.T) {
	events := jsonLinesOf[ga4Event](t, "testdata/ga4.ndjson")
	var table bytes.Buffer
	must.OK(t, parquet.Write(&table, events))
	asParquet := filepath.Join(t.TempDir(), "ga4.parquet")
	must.OK(t, os.WriteFile(asParquet, table.Bytes(), 0o600))
	const written = "2/1/15.25 3/2/75"
	if want := counted(ga4Actions(t, events)); want != written {
		t.Fatalf("the test counts %s, want %s", want, written)
	}
	for _, file := range []string{"testdata/ga4.ndjson", asParquet} {
		h, got := imported(t, " 0 of 14 lines rejected", [2]string{file, "testdata/ga4.mapping.yaml"})
		if got != written {
			t.Errorf("%s: %s, want %s", file, got, written)
		}
		if got := h.reported("campaign", "12", "--filter", "device=desktop", "--filter", "country=US"); got != "1/0/0 1/1/55" {
			t.Errorf("%s: %s for desktop computers in the United States", file, got)
		}
	}
}

func TestExportsOfSegment(t *testing.T) {
	type call struct {
		MessageID, AnonymousID, Event, Timestamp string
		Properties                               struct {
			Experiment string  `json:"experiment_id"`
			Variation  string  `json:"variation_id"`
			Revenue    float64 `json:"revenue"`
		}
	}
	var actions []action
	for _, c := range jsonLinesOf[call](t, "testdata/segment.ndjson") {
		actions = append(actions, trackActions(t, c.MessageID, c.Event, c.AnonymousID, c.Timestamp, c.Properties.Experiment, c.Properties.Variation, fmt.Sprint(c.Properties.Revenue))...)
	}
	const written = "2/1/25.5 2/1/49.95"
	if want := counted(actions); want != written {
		t.Fatalf("the test counts %s, want %s", want, written)
	}
	if _, got := imported(t, "13 rows accepted, 0 of 16 lines rejected", [2]string{"testdata/segment.ndjson", "testdata/segment.mapping.yaml"}); got != written {
		t.Errorf("%s, want %s", got, written)
	}
}

func TestExportsOfRudderStack(t *testing.T) {
	var actions []action
	for _, r := range records(t, "testdata/rudderstack.csv") {
		actions = append(actions, trackActions(t, r["id"], r["event_text"], r["anonymous_id"], r["timestamp"], r["experiment_id"], r["variation_id"], r["revenue"])...)
	}
	const written = "2/1/25.5 2/1/49.95"
	if want := counted(actions); want != written {
		t.Fatalf("the test counts %s, want %s", want, written)
	}
	if _, got := imported(t, " 0 of 14 lines rejected", [2]string{"testdata/rudderstack.csv", "testdata/rudderstack.mapping.yaml"}); got != written {
		t.Errorf("%s, want %s", got, written)
	}
}

// TestDraftsOfExports imports exports with the mappings that --inspect drafts.
func TestDraftsOfExports(t *testing.T) {
	tier.OnlyLong(t)
	for file, written := range map[string]string{"ga4.ndjson": "2/1/15.25 3/2/75", "rudderstack.csv": "2/1/25.5 2/1/49.95"} {
		path := filepath.Join(t.TempDir(), file)
		must.OK(t, os.WriteFile(path, must.Get(os.ReadFile(filepath.Join("testdata", file)))(t), 0o600))
		newHouse(t).must("import", "--inspect", path)
		mapping := path + ".mapping.yaml"
		edit := strings.NewReplacer("campaignId: {value: 1}", "campaignId: {value: 12}", "goalId: {value: 1}", "goalId: {value: 3}")
		must.OK(t, os.WriteFile(mapping, []byte(edit.Replace(string(must.Get(os.ReadFile(mapping))(t)))), 0o600))
		if _, got := imported(t, " 0 of 14 lines rejected", [2]string{path, mapping}); got != written {
			t.Errorf("%s: %s, want %s", file, got, written)
		}
	}
}

// TestExportsOfShopify imports orders, of which some have several items, no visitor or no
// view, or are cancelled, and the views of another tool.
func TestExportsOfShopify(t *testing.T) {
	var actions []action
	for _, r := range records(t, "testdata/shopify.views.csv") {
		variation := map[string]int{"control": 0, "new": 1}[r["variation"]]
		actions = append(actions, action{visitor: r["visitor_id"], at: must.Get(time.Parse(time.RFC3339, r["viewed_at"]))(t), view: true, variation: variation})
	}
	for _, r := range records(t, "testdata/shopify.orders.csv") {
		_, visitor, attributed := strings.Cut(r["Note Attributes"], "visitor_id: ")
		visitor, _, _ = strings.Cut(visitor, "\n")
		if r["Total"] == "" || !attributed || r["Cancelled at"] != "" {
			continue
		}
		at := must.Get(time.Parse("2006-01-02 15:04:05 -0700", r["Created at"]))(t)
		actions = append(actions, action{visitor: visitor, at: at, value: must.Get(strconv.ParseFloat(r["Total"], 64))(t)})
	}
	const written = "3/2/99.8 3/1/54.8"
	if want := counted(actions); want != written {
		t.Fatalf("the test counts %s, want %s", want, written)
	}
	h, got := imported(t, " lines rejected", [2]string{"testdata/shopify.orders.csv", "testdata/shopify.orders.mapping.yaml"}, [2]string{"testdata/shopify.views.csv", "testdata/shopify.views.mapping.yaml"})
	if got != written {
		t.Errorf("%s, want %s", got, written)
	}
	if out := h.must("import", "-m", "testdata/shopify.orders.mapping.yaml", "testdata/shopify.orders.csv"); !strings.Contains(out, "6 rows accepted, 0 of 11 lines rejected") {
		t.Errorf("a second time: %s", out)
	}
}
