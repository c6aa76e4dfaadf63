package looks

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/schema/catalogue"
)

// at returns a time in March 2026: day and hour.
func at(d, hour int) time.Time { return time.Date(2026, 3, d, hour, 0, 0, 0, time.UTC) }

func run(from, to time.Time) catalogue.Run {
	if to.IsZero() {
		return catalogue.Run{From: from}
	}
	return catalogue.Run{From: from, To: &to}
}

// TestSchedule checks which days are full, and when the looks are. The first day is partial,
// and a break divides weeks.
func TestSchedule(t *testing.T) {
	never := time.Time{}
	for _, test := range []struct {
		name    string
		runs    []catalogue.Run
		daily   bool
		first   FirstView
		through time.Time
		ended   bool
		want    string // ends of looks, number of full days, next look
	}{
		{"before the first midnight", []catalogue.Run{run(at(2, 9), never)}, false, FirstView{at(2, 10), at(2, 10)}, at(2, 20), false, "looks; 0 days; next 10"},
		{"a week that is not mature", []catalogue.Run{run(at(2, 9), never)}, false, FirstView{at(2, 10), at(2, 10)}, at(10, 23), false, "looks; 7 days; next 10"},
		{"a mature week", []catalogue.Run{run(at(2, 9), never)}, false, FirstView{at(2, 10), at(2, 10)}, at(11, 0), false, "looks 10; 8 days; next 17"},
		{"a start at midnight", []catalogue.Run{run(at(2, 0), never)}, false, FirstView{at(2, 0), at(2, 0)}, at(11, 0), false, "looks 9; 9 days; next 16"},
		{"views before the start do not count", []catalogue.Run{run(at(4, 12), never)}, false, FirstView{at(2, 10), at(2, 10)}, at(14, 0), false, "looks 12; 9 days; next 19"},
		{"the first view after the start", []catalogue.Run{run(at(2, 9), never)}, false, FirstView{at(5, 10), at(5, 10)}, at(14, 0), false, "looks 13; 8 days; next 20"},
		{"imported data begin with the first view", []catalogue.Run{run(at(25, 9), never)}, false, FirstView{at(2, 10), at(25, 10)}, at(26, 0), false, "looks 10 17 24; 23 days; next 31"},
		{"no run is known", nil, false, FirstView{at(2, 10), at(2, 10)}, at(18, 12), false, "looks 10 17; 15 days; next 24"},
		{"a stop within the second week breaks it", []catalogue.Run{run(at(2, 9), at(13, 12)), run(at(14, 8), never)}, false, FirstView{at(2, 10), at(2, 10)}, at(23, 0), false, "looks 10 22; 18 days; next 29"},
		{"a stop on the last day", []catalogue.Run{run(at(2, 9), at(9, 23))}, false, FirstView{at(2, 10), at(2, 10)}, at(20, 0), true, "looks; 6 days; next -"},
		{"a stop after the last day", []catalogue.Run{run(at(2, 9), at(10, 1))}, false, FirstView{at(2, 10), at(2, 10)}, at(10, 2), true, "looks 10; 7 days; next -"},
		{"daily looks", []catalogue.Run{run(at(2, 9), never)}, true, FirstView{at(2, 10), at(2, 10)}, at(6, 1), false, "looks 4 5; 3 days; next 6"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := &plan.Plan{Runs: test.runs, Ended: test.ended, Running: !test.ended}
			p.Rules.LookRules = plan.LookRules{PlannedDays: 28, Maturity: 24 * time.Hour, Daily: test.daily}
			s := NewSchedule(p, test.first, test.through, test.through, nil)
			got := "looks"
			for _, l := range s.Looks {
				got += fmt.Sprint(" ", l.End.Day())
			}
			got += fmt.Sprintf("; %d days; next ", s.FullDays())
			if s.Next.IsZero() {
				got += "-"
			} else {
				got += fmt.Sprint(s.Next.Day())
			}
			if got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// TestLooksEndWithTheNewestEvent checks that weeks without any event are no looks. All days of
// a look are full, also those without events.
// TestRecordedLooksFixTheFirstDay has a first view that was accepted a day late, after the start.
func TestRecordedLooksFixTheFirstDay(t *testing.T) {
	p := &plan.Plan{Runs: []catalogue.Run{run(at(3, 11), time.Time{})}, Running: true}
	p.Rules.LookRules = plan.LookRules{PlannedDays: 28, Maturity: 24 * time.Hour}
	first := FirstView{at(2, 10), at(3, 11)}
	before := NewSchedule(p, first, at(12, 0), at(12, 0), nil)
	if len(before.Looks) != 1 || !before.Looks[0].End.Equal(at(10, 0)) {
		t.Fatalf("%+v", before.Looks)
	}
	recorded := []Record{{Row: Row{Look: Look{Number: 1, End: at(10, 0), Days: 7}, FirstDay: at(3, 0)}}}
	after := NewSchedule(p, first, at(12, 0), at(12, 0), recorded)
	if fmt.Sprint(after.Looks, after.Next) != fmt.Sprint(before.Looks, before.Next) {
		t.Errorf("%v, then next %s; before the first look was recorded %v, then %s", after.Looks, after.Next, before.Looks, before.Next)
	}
}

func TestLooksEndWithTheNewestEvent(t *testing.T) {
	p := &plan.Plan{Runs: []catalogue.Run{run(at(2, 9), time.Time{})}, Running: true}
	p.Rules.LookRules = plan.LookRules{PlannedDays: 28, Maturity: 24 * time.Hour}
	s := NewSchedule(p, FirstView{at(2, 10), at(2, 10)}, at(31, 0), at(11, 12), nil)
	if len(s.Looks) != 2 || s.FullDays() != 14 {
		t.Errorf("%d looks, %d full days", len(s.Looks), s.FullDays())
	}
}

// TestParts checks the periods of first views of a look: whole weeks, divided by changes of
// shares, and the full days since.
func TestParts(t *testing.T) {
	p := &plan.Plan{Runs: []catalogue.Run{run(at(2, 9), at(13, 12)), run(at(14, 8), time.Time{})}, Running: true}
	p.Rules.LookRules = plan.LookRules{PlannedDays: 28, Maturity: 24 * time.Hour}
	p.SharePeriods = []plan.SharePeriod{{Since: plan.OpenFrom}, {Since: at(5, 7)}, {Since: at(18, 0)}}
	s := NewSchedule(p, FirstView{at(2, 10), at(2, 10)}, at(25, 0), at(25, 0), nil)
	describe := func(spans []span) string {
		var all []string
		for _, part := range partsOf(p, spans) {
			all = append(all, fmt.Sprintf("%s-%s:%d", part.from.Format("2.15"), part.to.Format("2.15"), part.period))
		}
		return strings.Join(all, " ")
	}
	if got, want := describe(s.inLooks(at(22, 0))), "3.00-5.07:0 5.07-10.00:1 15.00-18.00:1 18.00-22.00:2"; got != want {
		t.Errorf("in looks %s, want %s", got, want)
	}
	if got, want := describe(s.sinceLooks(at(24, 0))), "3.00-5.07:0 5.07-10.00:1 15.00-18.00:1 18.00-24.00:2"; got != want {
		t.Errorf("since looks %s, want %s", got, want)
	}
	if got, want := describe(s.sinceLooks(at(12, 0))), "3.00-5.07:0 5.07-12.00:1"; got != want {
		t.Errorf("within the broken week %s, want %s", got, want)
	}
	var cuts []string
	for _, cut := range s.SeriesCuts(p) {
		cuts = append(cuts, cut.Format("2.15"))
	}
	if got, want := strings.Join(cuts, " "), "3.00 5.07 10.00 15.00 18.00"; got != want {
		t.Errorf("cuts %s, want %s", got, want)
	}
}
