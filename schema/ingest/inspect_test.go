package ingest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lifthouse/schema/schematest/must"
)

// inspected returns the inspection of a file with the content.
func inspected(t *testing.T, name, content string) *Inspection {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must.OK(t, os.WriteFile(path, []byte(content), 0o600))
	in := must.Get(InspectFile(t.Context(), path, Options{}))(t)
	return in
}

// TestInspectFindsTypesAndFields inspects files with the column names of the tools that
// write them, and imports each with its drafted mapping.
func TestInspectFindsTypesAndFields(t *testing.T) {
	for _, test := range []struct{ name, content, types, guess string }{
		{
			"shop.csv", "Bestellung;Kunde;Datum;Gruppe;Umsatz\r\n1;Jürgen;02.05.2026 14:00;kontrolle;0\r\n2;Ana;03.05.2026 15:10;neu;1234,56\r\n",
			"integer text time text number,", "time=Datum value=Umsatz variationId=Gruppe visitor=Kunde",
		},
		{ // the assignment query and the metric of GrowthBook, joined
			"growthbook.tsv", "user_id\ttimestamp\texperiment_id\tvariation_id\tamount\nu1\t2026-05-01 12:00:00\te\t0\t\nu2\t2026-05-01 12:00:00\te\t1\t3.5\n",
			"text time text integer number", "time=timestamp value=amount variationId=variation_id visitor=user_id",
		},
		{ // the BigQuery export of GA4
			"ga4.ndjson", `{"event_timestamp":"1777636800000000","event_name":"purchase","user_pseudo_id":"1.2","device":{"category":"mobile","web_info":{"browser":"Chrome"}},"geo":{"country":"Germany"},"ecommerce":{"purchase_revenue":12.5},"event_params":[{"key":"a"}]}`,
			"time text number text text text number", "browser=device.web_info.browser device=device.category time=event_timestamp value=ecommerce.purchase_revenue visitor=user_pseudo_id",
		},
		{ // a track call of Segment and RudderStack
			"segment.ndjson", `{"anonymousId":"a1","messageId":"m1","event":"Order Completed","timestamp":"2026-05-01T12:00:00.123Z","properties":{"revenue":5,"variation":"control"}}`,
			"text text text time integer text", "eventId=messageId time=timestamp value=properties.revenue variationId=properties.variation visitor=anonymousId",
		},
		{ // the export of orders of Shopify
			"orders_export.csv", "Name,Email,Financial Status,Paid at,Total,Currency,Created at\n#1001,a@example.com,paid,2026-05-01 12:00:00 +0200,10.00,EUR,2026-05-01 12:00:00 +0200\n#1002,b@example.com,paid,2026-05-01 12:00:00 +0200,11.00,EUR,2026-05-01 13:00:00 +0200\n",
			"text text text time number text time", "eventId=Name time=Created at value=Total visitor=Email",
		},
	} {
		in := inspected(t, test.name, test.content)
		var types, guess []string
		for _, c := range in.Columns {
			text := string(c.Type)
			if c.Comma {
				text += ","
			}
			types = append(types, text)
		}
		found := in.GuessColumns()
		for _, field := range []string{"browser", "country", "device", "eventId", "time", "value", "variationId", "visitor"} {
			if c, known := found[field]; known {
				guess = append(guess, field+"="+c.Name)
			}
		}
		if got := strings.Join(types, " "); got != test.types {
			t.Errorf("%s has the types %s, want %s", test.name, got, test.types)
		}
		if got := strings.Join(guess, " "); got != test.guess {
			t.Errorf("%s: %s, want %s", test.name, got, test.guess)
		}
		if _, err := ReadMapping(strings.NewReader(in.DraftMapping(test.name))); err != nil && found["visitor"].Name != "" && found["time"].Name != "" && found["variationId"].Name != "" {
			t.Errorf("%s: the draft is not a mapping: %v\n%s", test.name, err, in.DraftMapping(test.name))
		}
	}
}

// TestInspectReadsMoreThanALine inspects a file that is longer than a line may be.
func TestInspectReadsMoreThanALine(t *testing.T) {
	in := inspected(t, "long.csv", "visitor,page\n"+strings.Repeat("v,"+strings.Repeat("x", 200)+"\n", 8000))
	if len(in.Columns) != 2 || in.Columns[1].Distinct != 1 {
		t.Errorf("%+v", in.Columns)
	}
}

func TestDraftMapsControlToZero(t *testing.T) {
	in := inspected(t, "x.csv", "visitor,ts,group,revenue\na,1777636800,New,1\nb,1777636801,Control,2\nc,1777636802,New,0\n")
	draft := in.DraftMapping("x.csv")
	for _, want := range []string{`variationId: {column: "group", map: {"Control": 0, "New": 1}}`, `time: {column: "ts", format: "unix"}`, `when: {column: "revenue", above: 0}`} {
		if !strings.Contains(draft, want) {
			t.Errorf("the draft lacks %s:\n%s", want, draft)
		}
	}
}

// FuzzInspect checks that no file crashes the inspection, and that a draft with all guesses
// is a mapping.
func FuzzInspect(f *testing.F) {
	f.Add("a;b\n1;2\n", false)
	f.Add("visitor,time,variation,value\nx,2026-05-01,control,\"1\n2\"\n", false)
	f.Add("{\"visitor\":\"x\",\"time\":1777636800,\"variation\":{\"a\":[1]}}\n", true)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content string, json bool) {
		name := "f.csv"
		if json {
			name = "f.ndjson"
		}
		path := filepath.Join(dir, name)
		must.OK(t, os.WriteFile(path, []byte(content), 0o600))
		in, err := InspectFile(t.Context(), path, Options{})
		if err != nil {
			return
		}
		found := in.GuessColumns()
		for _, field := range []string{"visitor", "time", "variationId"} {
			if c, known := found[field]; !known || c.Name == "" {
				return
			}
		}
		if _, err := ReadMapping(strings.NewReader(in.DraftMapping(content))); err != nil {
			t.Errorf("%v\n%s", err, in.DraftMapping(content))
		}
	})
}
