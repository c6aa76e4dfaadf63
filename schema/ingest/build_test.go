package ingest

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"lifthouse/schema"
)

func event(changes ...string) *fields {
	f := &fields{}
	set := func(name, value string) {
		at, known := fieldByName(name)
		if !known {
			panic(name)
		}
		f.values[at] = value
	}
	for _, pair := range [][2]string{
		{"eventId", "e1"},
		{"time", "2026-05-01T12:00:00.123Z"},
		{"websiteId", "1"},
		{"visitor", "v"},
		{"event", "view"},
		{"campaignId", "12"},
		{"variationId", "1"},
	} {
		set(pair[0], pair[1])
	}
	for _, change := range changes {
		name, value, _ := strings.Cut(change, "=")
		set(name, value)
	}
	return f
}

func TestBuildMakesARow(t *testing.T) {
	rows, err := build(nil, event("device=Mobile", "country=fr", "city= Lyon", "event=goal", "goalId=3", "value=19.9", "profit=-0.0001"), "unused", Times{})
	if err != nil || len(rows) != 1 {
		t.Fatalf("build = %v, %v", rows, err)
	}
	want := schema.Event{
		EventID: schema.Hash("e1"), Time: time.Date(2026, 5, 1, 12, 0, 0, 123e6, time.UTC), WebsiteID: 1,
		Subject: schema.SubjectCampaign, SubjectID: 12, VariationID: 1, VisitorID: schema.Hash("v"),
		Kind: schema.KindGoal, GoalID: 3, Value: 199000, Profit: -1,
		Attributes: schema.Attributes{Device: "mobile", Country: "FR", City: " Lyon"},
	}
	if rows[0] != want {
		t.Errorf("build = %+v, want %+v", rows[0], want)
	}
}

func TestBuildNamesEveryFault(t *testing.T) {
	for _, test := range []struct {
		change string
		want   string
	}{
		{"visitor=", "visitor: missing"},
		{"time=yesterday", `time: "yesterday": want RFC 3339`},
		{"time=9999-01-01T00:00:00Z", "want a time from 1971 to 2099"},
		{"time=1970-12-31T23:59:59Z", "want a time from 1971 to 2099"},
		{"time=1777777777", "want a time from 1971 to 2099; integers are Unix milliseconds"},
		{"websiteId=x", `websiteId: "x": want an integer from 1`},
		{"websiteId=0", "want an integer from 1"},
		{"websiteId=99999999999999999999", "want an integer from 1"},
		{"event=buy", "want view, click"},
		{"event=goal", "goalId: missing"},
		{"goalId=3", `only an event "goal" has one`},
		{"value=1.00001", "at most 4 decimals"},
		{"value=1000000000.0001", "at most 1000000000"},
		{"value=NaN", "want an amount"},
		{"country=FRA", "want two letters"},
		{"visitorType=old", "want new or returning"},
		{"device=" + strings.Repeat("x", 513), "want at most 512 bytes, have 513"},
		{"city=\xff", "want UTF-8"},
		{"campaignId=", "want either a campaignId or a widgetId"},
		{"widgetId=4", "want either a campaignId or a widgetId"},
		{"experimentId=4", "only a widget has experiments"},
		{"variationId=", "variationId: missing"},
		{"variationId=-1", "want an integer from 0"},
	} {
		if _, err := build(nil, event(test.change), "id", Times{}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.40s: error = %v, want %q", test.change, err, test.want)
		}
	}
	_, err := build(nil, event("visitor=", "time=x", "event=x", "country=x"), "id", Times{})
	if n := strings.Count(fmt.Sprint(err), ";"); n != 3 {
		t.Errorf("four faults are told as %v", err)
	}
}

func TestBuildRepeatsAnEventForEachExposure(t *testing.T) {
	f := event("campaignId=", "variationId=")
	f.exposures = []exposure{{campaignID: "12", variationID: "1"}, {widgetID: "7", experimentID: "2", variationID: "0"}}
	rows, err := build(nil, f, "id", Times{})
	if err != nil || len(rows) != 2 || rows[1].Subject != schema.SubjectWidget || rows[1].ExperimentID != 2 || rows[0].EventID != rows[1].EventID {
		t.Errorf("build = %+v, %v", rows, err)
	}
	f.exposures[1] = f.exposures[0]
	if _, err := build(nil, f, "id", Times{}); err == nil || !strings.Contains(err.Error(), "given twice") {
		t.Errorf("the same exposure twice gives %v", err)
	}
	f.values[fieldCampaignID] = "12"
	if _, err := build(nil, f, "id", Times{}); err == nil || !strings.Contains(err.Error(), "not both") {
		t.Errorf("exposures and campaignId give %v", err)
	}
}

// TestParseMoneyEqualsExactArithmetic holds it against big.Rat.
func TestParseMoneyEqualsExactArithmetic(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		text := fmt.Sprintf("%d", random.Int64N(2_000_000_000)-1_000_000_000)
		if random.IntN(2) == 0 {
			text += fmt.Sprintf(".%0*d", 1+random.IntN(6), random.IntN(100))
		}
		if random.IntN(3) == 0 {
			text += fmt.Sprintf("e%d", random.IntN(9)-4)
		}
		got, ok := parseMoney(text)
		exact, valid := new(big.Rat).SetString(text)
		if !valid {
			t.Fatalf("%q is no number", text)
		}
		exact.Mul(exact, big.NewRat(schema.MoneyScale, 1))
		limit := big.NewRat(schema.MaxMoney*schema.MoneyScale, 1)
		fits := exact.IsInt() && new(big.Rat).Abs(exact).Cmp(limit) <= 0
		if ok != fits || ok && exact.Num().Int64() != got {
			t.Fatalf("parseMoney(%q) = %d, %v; exact %s", text, got, ok, exact.RatString())
		}
	}
}

func FuzzParseMoney(f *testing.F) {
	for _, seed := range []string{"0", "-1", "12.5", "1e3", "1e-4", ".5", "5.", "", "-", "e1", "1e", "NaN", "1_0", "0x1", "1e64", "0e-64", "+1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := parseMoney(text)
		if ok && (got > schema.MaxMoney*schema.MoneyScale || got < -schema.MaxMoney*schema.MoneyScale) {
			t.Errorf("parseMoney(%q) = %d, beyond the limit", text, got)
		}
	})
}
