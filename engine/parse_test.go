package engine

import (
	"errors"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"lifthouse/engine/query"
	"lifthouse/schema"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

func may(day int) time.Time { return time.Date(2026, 5, day, 0, 0, 0, 0, time.UTC) }

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
		{"Asia/Beirut", "2021-10-31", "2021-10-30T22:00:00Z", "2021-10-31T22:00:00Z"},       // 23:00 of the day before twice
	} {
		r := must.Get(query.ParseReport(query.CampaignResults, "filters[dateFrom]="+test.date+"&filters[dateTo]="+test.date))(t)
		zone, err := time.LoadLocation(test.zone)
		if err == nil {
			err = r.Filters.ResolveDates(zone)
		}
		if from, to := query.FormatInstant(r.Filters.From), query.FormatInstant(r.Filters.To); err != nil || from != test.from || to != test.to {
			t.Errorf("%s in %s is from %s to %s, %v; want %s to %s", test.date, test.zone, from, to, err, test.from, test.to)
		}
		for at := r.Filters.From.Add(-30 * time.Hour); at.Before(r.Filters.To.Add(30 * time.Hour)); at = at.Add(15 * time.Minute) {
			isWithin := !at.Before(r.Filters.From) && at.Before(r.Filters.To)
			isOf := at.In(zone).Format(time.DateOnly) == test.date
			check.That(t, isOf == isWithin, "%s in %s: %v is %v", test.date, test.zone, at, isWithin)
		}
	}
	r := must.Get(query.ParseReport(query.CampaignResults, "filters[dateFrom]=2026-05-02&filters[dateTo]=2026-05-01T23:00:00Z"))(t)
	east, west := r.Filters, r.Filters
	if err := east.ResolveDates(time.FixedZone("", 2*60*60)); err != nil {
		t.Error(err)
	}
	if err := west.ResolveDates(time.UTC); err == nil || err.Error() != `filters[dateTo]: "2026-05-01T23:00:00Z": must be after the start of the dates, 2026-05-02T00:00:00Z` {
		t.Errorf("%v", err)
	}
}

func TestParseReport(t *testing.T) {
	plain := query.Request{}
	with := func(change func(*query.Request)) query.Request {
		r := plain
		change(&r)
		return r
	}
	lists := func(lists ...query.ListFilter) query.Request {
		return with(func(r *query.Request) { r.Filters.Lists = lists })
	}
	for _, test := range []struct {
		query string
		want  query.Request
	}{
		{"", plain},
		{"goal=3&websiteId=1&dimension=device&compareMetric=profitPerVisitor", query.Request{GoalID: 3, WebsiteID: 1, Dimension: query.ByDevice, Metric: query.ProfitPerVisitor}},
		{"filters[device][]=b&filters[device][]=A", lists(query.ListFilter{Attribute: "device", Values: []string{"a", "b"}})},
		{"filters%5Bdevice%5D%5B%5D=b&filters[device][7]=a&filters[device]=c&filters[device]=a", lists(query.ListFilter{Attribute: "device", Values: []string{"a", "b", "c"}})},
		{"filters[country][]=uk&filters[country][]=", lists(query.ListFilter{Attribute: "country", Values: []string{"", "UK"}})},
		{"filters[city][]=Paris, France", lists(query.ListFilter{Attribute: "city", Values: []string{"Paris, France"}})},
		{"filters[referrer]=&filters[utmTerm]=a*b", with(func(r *query.Request) {
			r.Filters.Texts = []query.TextFilter{{Attribute: "utmTerm", Pattern: "a*b"}, {Attribute: "referrer", Pattern: ""}}
		})},
		{"filters[visitorType]=new", with(func(r *query.Request) {
			r.Filters.Texts = []query.TextFilter{{Attribute: "visitorType", Pattern: "new"}}
		})},
		{"filters[dateFrom]=2026-05-01&filters[dateTo]=2026-05-01", with(func(r *query.Request) {
			r.Filters.From, r.Filters.To = may(1), may(2)
		})},
		{"filters[dateFrom]=2026-05-01T02:00:00%2B02:00&filters[dateTo]=2026-05-01T12:00:00.0005Z", with(func(r *query.Request) {
			r.Filters.From, r.Filters.To = may(1), time.Date(2026, 5, 1, 12, 0, 0, 1e6, time.UTC)
		})},
		{"filters[dateFrom]=2026-05-01t00:00:00z", with(func(r *query.Request) { r.Filters.From = may(1) })},
		{"filters[dateFrom]=1970-01-01&filters[dateTo]=2199-12-31", with(func(r *query.Request) {
			r.Filters.From, r.Filters.To = schema.FirstTime, schema.EndOfTime
		})},
		{"filters[dateTo]=2026-05-01T02:00:00+02:00", with(func(r *query.Request) { r.Filters.To = may(1) })},
	} {
		got, err := query.ParseReport(query.CampaignResults, test.query)
		if err == nil {
			err = got.Filters.ResolveDates(time.UTC)
		}
		check.That(t, err == nil && reflect.DeepEqual(got, test.want), "ParseReport(%q) = %+v, %v; want %+v", test.query, got, err, test.want)
	}
}

func TestParseReportNamesEveryFault(t *testing.T) {
	for _, test := range []struct {
		query string
		want  []string // name: a part of the detail
	}{
		{"goals=3", []string{"goals: did you mean goal?"}},
		{"filters[devise][]=a", []string{"filters[devise][]: did you mean filters[device][]"}},
		{"filters=x", []string{"filters: unknown parameter"}},
		{"filters[]=x", []string{"filters[]: unknown parameter"}},
		{"filters[device=x", []string{"filters[device: unknown parameter"}},
		{"filters[device][1000]=x", []string{"filters[device][1000]: unknown parameter"}},
		{"goal=x&dimension=colour&compareMetric=money&websiteId=-1", []string{"compareMetric: must be one of goalConversionRate", "dimension: must be one of browser", "goal: digits only", "websiteId: digits only"}},
		{"goal=1&goal=2", []string{"goal: must be given once"}},
		{"filters[referrer]=a&filters[referrer]=b", []string{"filters[referrer]: must be given once"}},
		{"filters[referrer][]=a", []string{"filters[referrer][]: must be one value, written as filters[referrer]"}},
		{"filters[visitorType]=", []string{"filters[visitorType]: must be one of new, returning"}},
		{"filters[dateFrom]=", []string{"filters[dateFrom]: must be a date"}},
		{"filters[dateFrom]=01/05/2026", []string{"filters[dateFrom]: must be a date"}},
		{"filters[dateFrom]=2026-05-01T12:00:00", []string{"filters[dateFrom]: with an offset"}},
		{"filters[dateFrom]=1969-01-01", []string{"filters[dateFrom]: must be a date"}},
		{"filters[dateTo]=1969-12-31", []string{"filters[dateTo]: must be a date"}},
		{"filters[dateTo]=2200-01-01", []string{"filters[dateTo]: must be a date"}},
		{"filters[dateFrom]=1970-01-01T01:00:00%2B02:00", []string{"filters[dateFrom]: must be a date"}},
		{"filters[dateFrom]=2026-05-01T00:00:00%2B24:00", []string{"filters[dateFrom]: must be a date"}},
		{"filters[dateFrom]=2026-05-01T0:00:00Z", []string{"filters[dateFrom]: must be a date"}},
		{"filters[dateFrom]=2026-05-01T00:00:00,5Z", []string{"filters[dateFrom]: must be a date"}},
		{"filters[dateFrom]=2026-05-02&filters[dateTo]=2026-05-01", []string{"filters[dateTo]: after the start of the dates"}},
		{"filters[country][]=FRA", []string{"filters[country][]: two letters"}},
		{"filters[city][]=" + strings.Repeat("x", 513), []string{"filters[city][]: at most 512 bytes"}},
		{"filters[city][]=%ff", []string{"filters[city][]: UTF-8"}},
		{"filters[zScore]=0", []string{"filters[zScore]: above 0"}},
		{"filters[zScore]=Inf", []string{"filters[zScore]: above 0"}},
		{"filters[goalValue]=0x10", []string{"filters[goalValue]: must be a number"}},
		{"filters[goalValue]=1e400", []string{"filters[goalValue]: must be a number"}},
		{"filters[goalValue]=-1e999", []string{"filters[goalValue]: must be a number"}},
		{"filters[goalValue]=1e-999", []string{"filters[goalValue]: must be a number"}},
		{"filters[goalValue]=1/2", []string{"filters[goalValue]: must be a number"}},
		{"filters[goalValue]=", []string{"filters[goalValue]: must be a number"}},
		{"a;b", []string{"query: cannot be parsed"}},
		{"goal=%zz", []string{"query: cannot be parsed"}},
		{"goal=" + strings.Repeat("1", 9000), []string{"query: at most 8192 bytes"}},
		{strings.Repeat("filters[city][]=a&", 3) + manyCities(101), []string{"filters[city][]: at most 100"}},
	} {
		_, err := query.ParseReport(query.CampaignResults, test.query)
		var invalid *query.InvalidError
		if !errors.As(err, &invalid) || len(invalid.Faults) != len(test.want) {
			t.Errorf("ParseReport(%.60q) error = %v, want %q", test.query, err, test.want)
			continue
		}
		for i, want := range test.want {
			name, detail, _ := strings.Cut(want, ": ")
			f := invalid.Faults[i]
			check.That(t, f.Name == name && strings.Contains(f.Detail, detail), "ParseReport(%.60q) fault = %+v, want %q", test.query, f, want)
		}
	}
}

func manyCities(n int) string {
	values := url.Values{}
	for i := range n {
		values.Add("filters[city][]", strings.Repeat("b", 1+i/26)+string(rune('a'+i%26)))
	}
	return values.Encode()
}

// FuzzParseReport checks that no query panics.
func FuzzParseReport(f *testing.F) {
	for _, seed := range []string{
		"", "goal=1", "filters[device][]=a&filters[device][]=b", "filters[city][]='; DROP TABLE events --", "filters[referrer]=*%25*",
		"filters[dateFrom]=2026-05-01&filters[dateTo]=2026-05-02", "filters[utmTerm]={x:String}", "dimension=channel", "filters[x", "%", ";",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, err := query.ParseReport(query.CampaignResults, text)
		invalid := new(query.InvalidError)
		check.That(t, err == nil || errors.As(err, &invalid), "error %v", err)
	})
}
