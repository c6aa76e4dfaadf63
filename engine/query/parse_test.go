package query_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/cockroachdb/datadriven"

	"lifthouse/engine/query"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/scripts"
)

// TestScripts runs the scripts in testdata. Their command parse shows the request of each query, or its faults.
func TestScripts(t *testing.T) {
	functions := template.FuncMap{"cities": func(n int) string {
		values := url.Values{}
		for i := range n {
			values.Add("filters[city][]", strings.Repeat("b", 1+i/26)+string(rune('a'+i%26)))
		}
		return values.Encode()
	}}
	scripts.RunLines(t, func(t *testing.T, _ *datadriven.TestData, line string) string {
		t.Helper()
		r, err := query.ParseReport(query.CampaignResults, scripts.Expand(t, line, functions))
		if err == nil {
			err = r.Filters.ResolveDates(time.UTC)
		}
		if err == nil {
			filters := must.Get(json.Marshal(r.Filters.CanonicalForm()))(t)
			window := query.FormatInstant(r.Filters.From) + ".." + query.FormatInstant(r.Filters.To)
			return fmt.Sprintf("goal %d, website %d, by %q, %q: %s, %s", r.GoalID, r.WebsiteID, r.Dimension, r.Metric,
				filters, window)
		}
		invalid := new(query.InvalidError)
		must.That(t, errors.As(err, &invalid), "%v", err)
		var named []string
		for _, fault := range invalid.Faults {
			named = append(named, fmt.Sprintf("%.30s %.30q: %.60s", fault.Name, fault.Value, fault.Detail))
		}
		return strings.Join(named, "\n  ")
	})
}

// TestDatesBeginAtMidnightOfTheWebsite resolves dates where the clock changes: around midnight, and at other hours. A
// date has each of its instants, and no other.
func TestDatesBeginAtMidnightOfTheWebsite(t *testing.T) {
	for _, test := range []struct{ zone, date, from, to string }{
		{"UTC", "2026-05-01", "2026-05-01T00:00:00Z", "2026-05-02T00:00:00Z"},
		{"Europe/Berlin", "2026-05-01", "2026-04-30T22:00:00Z", "2026-05-01T22:00:00Z"},
		{"Europe/Berlin", "2026-03-29", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},     // 23 hours
		{"Europe/Berlin", "2026-10-25", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},     // 25 hours
		{"Asia/Kolkata", "2026-05-01", "2026-04-30T18:30:00Z", "2026-05-01T18:30:00Z"},      //
		{"America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"}, // begins at 01:00
		{"Asia/Beirut", "2021-03-28", "2021-03-27T22:00:00Z", "2021-03-28T21:00:00Z"},       // begins at 01:00
		{"America/Havana", "2025-11-02", "2025-11-02T04:00:00Z", "2025-11-03T05:00:00Z"},    // midnight twice
		{"Asia/Amman", "2021-10-29", "2021-10-28T21:00:00Z", "2021-10-29T22:00:00Z"},        // midnight twice
		{
			"Asia/Beirut", "2021-10-31", "2021-10-30T22:00:00Z",
			"2021-10-31T22:00:00Z",
		}, // 23:00 of the day before twice
	} {
		r := must.Get(query.ParseReport(query.CampaignResults,
			"filters[dateFrom]="+test.date+"&filters[dateTo]="+test.date))(t)
		zone, err := time.LoadLocation(test.zone)
		if err == nil {
			err = r.Filters.ResolveDates(zone)
		}
		if from, to := query.FormatInstant(r.Filters.From), query.FormatInstant(r.Filters.To); err != nil ||
			from != test.from || to != test.to {
			t.Errorf("%s in %s is from %s to %s, %v; want %s to %s", test.date, test.zone, from, to, err, test.from,
				test.to)
		}
		end := r.Filters.To.Add(30 * time.Hour)
		for at := r.Filters.From.Add(-30 * time.Hour); at.Before(end); at = at.Add(15 * time.Minute) {
			isWithin := !at.Before(r.Filters.From) && at.Before(r.Filters.To)
			isOf := at.In(zone).Format(time.DateOnly) == test.date
			check.That(t, isOf == isWithin, "%s in %s: %v is %v", test.date, test.zone, at, isWithin)
		}
	}
	r := must.Get(query.ParseReport(query.CampaignResults, "filters[dateFrom]=2026-05-02&filters[dateTo]=2026-05-01T23:00:00Z"))(t)
	east, west := r.Filters, r.Filters
	check.OK(t, east.ResolveDates(time.FixedZone("", 2*60*60)))
	if err := west.ResolveDates(time.UTC); err == nil || err.Error() != `filters[dateTo]: "2026-05-01T23:00:00Z": must be after the start of the dates, 2026-05-02T00:00:00Z` {
		t.Errorf("%v", err)
	}
}

// FuzzParseReport checks that no query panics.
func FuzzParseReport(f *testing.F) {
	for _, seed := range []string{
		"", "goal=1", "filters[device][]=a&filters[device][]=b", "filters[city][]='; DROP TABLE events --",
		"filters[referrer]=*%25*",
		"filters[dateFrom]=2026-05-01&filters[dateTo]=2026-05-02", "filters[utmTerm]={x:String}", "dimension=channel",
		"filters[x", "%", ";",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, err := query.ParseReport(query.CampaignResults, text)
		invalid := new(query.InvalidError)
		check.That(t, err == nil || errors.As(err, &invalid), "error %v", err)
	})
}

// The query string of a report is parsed strictly.
func ExampleParseReport() {
	_, err := query.ParseReport(query.CampaignResults, "dimension=7colour&filters[dateFrom]=yesterday")
	var invalid *query.InvalidError
	if errors.As(err, &invalid) {
		for _, fault := range invalid.Faults {
			fmt.Printf("%s %q: %s\n", fault.Name, fault.Value, fault.Detail)
		}
	}
	// Output:
	// dimension "7colour": must be one of browser, channel, city, country, device, firstVisitPage, os, referrer, region, utmCampaign, utmContent, utmMedium, utmSource, utmTerm, visitorType, or an own attribute; or two of them
	// filters[dateFrom] "yesterday": must be a date (2026-05-01) or RFC 3339 with an offset (2026-05-01T00:00:00Z), in a year from 1970 to 2199
}
