package ingest

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strconv"
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

func TestBuild(t *testing.T) {
	rows, err := (&rules{}).validate(nil, event("time=2026-05-01t12:00:00.123z", "device=Mobile", "country=fr", "city= Lyon", "event=goal", "goalId=3", "value=19.9", "profit=-0.0001"), "unused")
	if err != nil || len(rows) != 1 {
		t.Fatalf("build = %v, %v", rows, err)
	}
	want := schema.Event{
		EventID: schema.HashID("e1"), Time: time.Date(2026, 5, 1, 12, 0, 0, 123e6, time.UTC), WebsiteID: 1,
		Subject: schema.SubjectCampaign, SubjectID: 12, VariationID: 1, VisitorID: schema.HashID("v"),
		Kind: schema.KindGoal, GoalID: 3, Value: 199000, Profit: -1,
		Attributes: schema.Attributes{Device: "mobile", Country: "FR", City: " Lyon"},
	}
	if rows[0] != want {
		t.Errorf("build = %+v, want %+v", rows[0], want)
	}
}

func TestBuildErrors(t *testing.T) {
	for _, test := range []struct {
		change string
		want   string
	}{
		{"visitor=", "visitor: missing"},
		{"time=yesterday", `time: "yesterday": must be RFC 3339`},
		{"time=9999-01-01T00:00:00Z", "must be in a year from 1970 to 2199"},
		{"time=1969-12-31T23:59:59Z", "must be in a year from 1970 to 2199"},
		{"time=1777777777", "must be at least 31536000000 (1971-01-01): integers are Unix milliseconds"},
		{"time=2026-05-01T12:00:00+24:00", "must be RFC 3339"},
		{"time=2026-05-01T1:00:00Z", "must be RFC 3339"},
		{"time=2026-05-01T12:00:00,5Z", "must be RFC 3339"},
		{"websiteId=x", `websiteId: "x": must be an integer from 1`},
		{"websiteId=0", "must be an integer from 1"},
		{"websiteId=99999999999999999999", "must be an integer from 1"},
		{"event=buy", "must be view, click"},
		{"event=goal", "goalId: missing"},
		{"goalId=3", `is only allowed for the event "goal"`},
		{"value=1000000000.0000001", "at most 1000000000"},
		{"value=1000000000.0001", "at most 1000000000"},
		{"value=NaN", "must be a decimal number"},
		{"country=FRA", "must be two letters"},
		{"visitorType=old", "must be new or returning"},
		{"device=" + strings.Repeat("x", 513), "must have at most 512 bytes, has 513"},
		{"city=a\x00b", "must not have the character U+0000"},
		{"city=\xff", "must be UTF-8"},
		{"campaignId=", "either campaignId or widgetId must be set"},
		{"widgetId=4", "either campaignId or widgetId must be set"},
		{"experimentId=4", "is only allowed with widgetId"},
		{"variationId=", "variationId: missing"},
		{"variationId=-1", "must be an integer from 0"},
	} {
		if _, err := (&rules{}).validate(nil, event(test.change), "id"); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.40s: error = %v, want %q", test.change, err, test.want)
		}
	}
	_, err := (&rules{}).validate(nil, event("visitor=", "time=x", "event=x", "country=x"), "id")
	if n := strings.Count(fmt.Sprint(err), ";"); n != 3 {
		t.Errorf("an event with four errors gives %v", err)
	}
}

func TestBuildExposures(t *testing.T) {
	f := event("campaignId=", "variationId=")
	f.exposures = []exposure{{campaignID: "12", variationID: "1"}, {widgetID: "7", experimentID: "2", variationID: "0"}}
	rows, err := (&rules{}).validate(nil, f, "id")
	if err != nil || len(rows) != 2 || rows[1].Subject != schema.SubjectWidget || rows[1].ExperimentID != 2 || rows[0].EventID != rows[1].EventID {
		t.Errorf("build = %+v, %v", rows, err)
	}
	f.exposures[1] = f.exposures[0]
	if _, err := (&rules{}).validate(nil, f, "id"); err == nil || !strings.Contains(err.Error(), "two exposures of this subject") {
		t.Errorf("the same exposure twice gives %v", err)
	}
	f.values[fieldCampaignID] = "12"
	if _, err := (&rules{}).validate(nil, f, "id"); err == nil || !strings.Contains(err.Error(), "must not be combined") {
		t.Errorf("exposures and campaignId give %v", err)
	}
}

// exactMoney is a reference implementation of parseMoney with big.Rat.
func exactMoney(text string) (int64, bool) {
	exact, valid := new(big.Rat).SetString(text)
	if !valid || new(big.Rat).Abs(exact).Cmp(big.NewRat(schema.MaxMoney, 1)) > 0 {
		return 0, false
	}
	units, _ := new(big.Int).SetString(exact.Mul(exact, big.NewRat(schema.MoneyScale, 1)).FloatString(0), 10) // FloatString rounds half away from zero
	return units.Int64(), true
}

// TestParseMoneyEqualsExactArithmetic compares parseMoney with big.Rat, also for
// the results of floating-point arithmetic.
func TestParseMoneyEqualsExactArithmetic(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	texts := []string{
		"18.990000000000002", "0.30000000000000004", "1e-7", "-1e-7", "0.00005", "-0.00005", "0.00004999999999999999999", "5e-5", "4.9e-5",
		"1000000000", "-1000000000", "999999999.99995", "999999999.99994", "1000000000.00000000001", "1e9", "1.00000000000000000001e9", "1e10", "1e64",
		"0e999", "1" + strings.Repeat("0", 30) + "e-30", "0." + strings.Repeat("0", 400) + "1", "1e-400",
	}
	for range 20_000 {
		text := fmt.Sprintf("%d", random.Int64N(2_000_000_002)-1_000_000_001)
		switch random.IntN(4) {
		case 0:
			text += fmt.Sprintf(".%0*d", 1+random.IntN(6), random.IntN(100))
		case 1:
			text = strconv.FormatFloat(float64(random.IntN(100)+1)*float64(random.IntN(10_000))/100*1.1, 'g', -1, 64)
		case 2:
			text += strconv.FormatFloat(random.Float64(), 'f', -1, 64)[1:]
		}
		if random.IntN(3) == 0 && !strings.Contains(text, "e") {
			text += fmt.Sprintf("e%d", random.IntN(16)-11)
		}
		texts = append(texts, text)
	}
	for _, text := range texts {
		got, ok := parseMoney(text)
		if want, fits := exactMoney(text); got != want || ok != fits {
			t.Fatalf("parseMoney(%q) = %d, %v; want %d, %v", text, got, ok, want, fits)
		}
	}
	for text, want := range map[string]bool{"1e-99999999999999999999": true, "0e99999999999999999999": true, "1e99999999999999999999": false} {
		if got, ok := parseMoney(text); got != 0 || ok != want {
			t.Errorf("parseMoney(%q) = %d, %v; want 0, %v", text, got, ok, want)
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
		if ok && len(text) < 20 && !strings.Contains(strings.ToLower(text), "e") {
			if want, fits := exactMoney(text); !fits || want != got {
				t.Errorf("parseMoney(%q) = %d; want %d, %v", text, got, want, fits)
			}
		}
	})
}
