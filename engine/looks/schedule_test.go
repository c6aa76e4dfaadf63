package looks

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// at returns a time in March 2026: day and hour.
func at(d, hour int) time.Time { return time.Date(2026, 3, d, hour, 0, 0, 0, time.UTC) }

// live returns the first view of a subject whose views are on time.
func live(first time.Time) FirstView { return FirstView{Time: first, OnTime: first, Accepted: first} }

func run(from, to time.Time) catalogue.Run {
	if to.IsZero() {
		return catalogue.Run{From: from}
	}
	return catalogue.Run{From: from, To: &to}
}

// TestSchedule checks which days are full, and when the looks are. The first day is partial, and a break divides weeks.
func TestSchedule(t *testing.T) {
	never := time.Time{}
	for _, test := range []struct {
		name    string
		runs    []catalogue.Run
		first   FirstView
		through time.Time
		ended   bool
		want    string // ends of looks, number of full days, next look
	}{
		{"before the first midnight", []catalogue.Run{run(at(2, 9), never)}, live(at(2, 10)), at(2, 20), false, "looks; 0 days; next 10"},
		{"a week that is not mature", []catalogue.Run{run(at(2, 9), never)}, live(at(2, 10)), at(10, 23), false, "looks; 7 days; next 10"},
		{"a mature week", []catalogue.Run{run(at(2, 9), never)}, live(at(2, 10)), at(11, 0), false, "looks 10; 8 days; next 17"},
		{"a start at midnight", []catalogue.Run{run(at(2, 0), never)}, live(at(2, 0)), at(11, 0), false, "looks 9; 9 days; next 16"},
		{"views before the start do not count", []catalogue.Run{run(at(4, 12), never)}, live(at(2, 10)), at(14, 0), false, "looks 12; 9 days; next 19"},
		{"the first view after the start", []catalogue.Run{run(at(2, 9), never)}, live(at(5, 10)), at(14, 0), false, "looks 13; 8 days; next 20"},
		{"imported data begin with the first view", []catalogue.Run{run(at(25, 9), never)}, FirstView{Time: at(2, 10), Accepted: at(25, 10), Imported: true}, at(26, 0), false, "looks 10 17 24; 23 days; next 31"},
		{"no run is known", nil, live(at(2, 10)), at(18, 12), false, "looks 10 17; 15 days; next 24"},
		{"a stop within the second week breaks it", []catalogue.Run{run(at(2, 9), at(13, 12)), run(at(14, 8), never)}, live(at(2, 10)), at(23, 0), false, "looks 10 22; 18 days; next 29"},
		{"a stop on the last day", []catalogue.Run{run(at(2, 9), at(9, 23))}, live(at(2, 10)), at(20, 0), true, "looks; 6 days; next -"},
		{"a stop after the last day", []catalogue.Run{run(at(2, 9), at(10, 1))}, live(at(2, 10)), at(10, 2), true, "looks 10; 7 days; next -"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := &plan.Plan{Runs: test.runs, Ended: test.ended, Running: !test.ended}
			p.Rules.LookRules = plan.LookRules{PlannedDays: 28, Maturity: 24 * time.Hour}
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
			check.Equal(t, got, test.want)
		})
	}
}

// TestRecordedLooksFixTheFirstDay has a first view that was accepted a day late, after the start.
func TestRecordedLooksFixTheFirstDay(t *testing.T) {
	p := &plan.Plan{Runs: []catalogue.Run{run(at(3, 11), time.Time{})}, Running: true}
	p.Rules.LookRules = plan.LookRules{PlannedDays: 28, Maturity: 24 * time.Hour}
	first := FirstView{Time: at(2, 10), Accepted: at(3, 11), Imported: true}
	before := NewSchedule(p, first, at(12, 0), at(12, 0), nil)
	must.Equal(t, len(before.Looks), 1, "%+v", before.Looks)
	must.That(t, before.Looks[0].End.Equal(at(10, 0)), "%+v", before.Looks)
	recorded := []Record{{LookRow: LookRow{Look: Look{Number: 1, End: at(10, 0), Days: 7}, FirstDay: at(3, 0)}}}
	after := NewSchedule(p, first, at(12, 0), at(12, 0), recorded)
	check.That(t, fmt.Sprint(after.Looks, after.Next) == fmt.Sprint(before.Looks, before.Next),
		"%v, then next %s; before the first look was recorded %v, then %s", after.Looks, after.Next, before.Looks, before.Next)
}

// TestLooksEndWithTheNewestEvent checks that weeks without any event are no looks. All days of a look are full, also
// those without events.
func TestLooksEndWithTheNewestEvent(t *testing.T) {
	p := &plan.Plan{Runs: []catalogue.Run{run(at(2, 9), time.Time{})}, Running: true}
	p.Rules.LookRules = plan.LookRules{PlannedDays: 28, Maturity: 24 * time.Hour}
	s := NewSchedule(p, live(at(2, 10)), at(31, 0), at(11, 12), nil)
	check.Equal(t, len(s.Looks), 2, "%d looks, %d full days", len(s.Looks), s.FullDays())
	check.Equal(t, s.FullDays(), 14, "%d looks, %d full days", len(s.Looks), s.FullDays())
}

// TestPeriodsOfLooks checks the periods of first views of a look: whole weeks, and the full days since.
func TestPeriodsOfLooks(t *testing.T) {
	p := &plan.Plan{Runs: []catalogue.Run{run(at(2, 9), at(13, 12)), run(at(14, 8), time.Time{})}, Running: true}
	p.Rules.LookRules = plan.LookRules{PlannedDays: 28, Maturity: 24 * time.Hour}
	s := NewSchedule(p, live(at(2, 10)), at(25, 0), at(25, 0), nil)
	describe := func(spans []Window) string {
		var all []string
		for _, part := range spans {
			all = append(all, fmt.Sprintf("%d-%d", part.From.Day(), part.To.Day()))
		}
		return strings.Join(all, " ")
	}
	check.Equal(t, describe(s.LookWindows(at(22, 0))), "3-10 15-22", "in looks")
	check.Equal(t, describe(s.sinceLooks(at(24, 0))), "3-10 15-24", "since looks")
	check.Equal(t, describe(s.sinceLooks(at(12, 0))), "3-12", "within the broken week")
	var cuts []string
	for _, cut := range SeriesCuts(s) {
		cuts = append(cuts, cut.Format("2.15"))
	}
	check.Equal(t, strings.Join(cuts, " "), "3.00 10.00 15.00", "cuts")
}

// TestNextLookFollowsNow checks the next look of a running subject whose events stopped on 5 March.
func TestNextLookFollowsNow(t *testing.T) {
	p := &plan.Plan{Runs: []catalogue.Run{run(at(2, 9), time.Time{})}, Running: true}
	p.Rules.LookRules = plan.LookRules{PlannedDays: 28, Maturity: 24 * time.Hour}
	s := NewSchedule(p, live(at(2, 10)), at(5, 12), at(5, 12), nil)
	for _, test := range []struct {
		now         time.Time
		number, end int
	}{{at(5, 12), 1, 10}, {at(10, 1), 1, 10}, {at(11, 1), 2, 17}, {at(17, 1), 2, 24}, {at(30, 1), 2, 31}} {
		if number, end := s.NextAfter(test.now); number != test.number || !end.Equal(at(test.end, 0)) {
			t.Errorf("on %s: look %d on %s, want %d on the %d", test.now, number, end, test.number, test.end)
		}
	}
}

// TestClockOfImportedViews checks where the clock of imported views starts, with stray views before the others.
func TestClockOfImportedViews(t *testing.T) {
	dayOf := func(d int) int64 { return at(d, 0).Unix() / int64(day/time.Second) }
	for _, test := range []struct {
		name   string
		onTime time.Time
		days   [][2]int64 // day and visitors
		want   string
	}{
		{"from the first day on", time.Time{}, [][2]int64{{2, 40}, {3, 40}}, "2.10"},
		{"a stray view", time.Time{}, [][2]int64{{2, 1}, {10, 40}, {11, 40}}, "10.00"},
		{"two stray views", time.Time{}, [][2]int64{{2, 1}, {10, 1}, {18, 40}}, "18.00"},
		{"a gap of six full days", time.Time{}, [][2]int64{{2, 1}, {9, 40}}, "2.10"},
		{"a gap after 100 visitors", time.Time{}, [][2]int64{{2, 100}, {20, 40}}, "2.10"},
		{"few views before those on time", at(5, 6), [][2]int64{{2, 50}, {3, 49}, {5, 400}}, "5.06"},
		{"a genuine backlog", at(5, 6), [][2]int64{{2, 50}, {3, 50}, {5, 400}}, "2.10"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var steps []moments.Step
			for _, d := range test.days {
				steps = append(steps,
					moments.Step{
						Bucket:       dayOf(int(d[0])),
						GroupMoments: moments.GroupMoments{Moments: moments.Moments{Visitors: d[1], Views: d[1]}},
					})
			}
			f, _ := FirstView{Time: at(2, 10), OnTime: test.onTime, Imported: true}.WithHistory(steps)
			check.Equal(t, f.Start().Format("2.15"), test.want)
		})
	}
}

// TestLooksWaitForAWindow has a conversion window of 7 days: looks of a running campaign, of one that has ended, and of
// imported data.
func TestLooksWaitForAWindow(t *testing.T) {
	windowed := func(runs []catalogue.Run, running, ended bool) *plan.Plan {
		p := &plan.Plan{Runs: runs, Running: running, Ended: ended}
		p.Rules.LookRules = plan.LookRules{PlannedDays: 28, Maturity: 24 * time.Hour}
		p.ConversionWindow.To = week
		return p
	}
	running := []catalogue.Run{run(at(2, 9), time.Time{})}
	stopped := []catalogue.Run{run(at(2, 9), at(19, 12))}
	for _, test := range []struct {
		name            string
		plan            *plan.Plan
		first           FirstView
		through, newest time.Time
		looks           int
		next            time.Time // end
		hasEnd          bool
	}{
		{"an hour too early", windowed(running, true, false), live(at(2, 10)), at(17, 23), at(17, 23), 0, at(10, 0), false},
		{"mature", windowed(running, true, false), live(at(2, 10)), at(18, 0), at(18, 0), 1, at(17, 0), false},
		{"stopped, the second look waits", windowed(stopped, false, true), live(at(2, 10)), at(20, 0), at(19, 12), 1, at(17, 0), false},
		{"stopped, all looks are mature", windowed(stopped, false, true), live(at(2, 10)), at(25, 0), at(19, 12), 2, time.Time{}, false},
		{"stopped, the last day is mature", windowed(stopped, false, true), live(at(2, 10)), at(28, 0), at(19, 12), 2, time.Time{}, true},
		{"imported, of the second look some visitors are not mature", windowed(stopped, false, true), FirstView{Time: at(2, 10), Accepted: at(30, 0), Imported: true}, at(30, 0), at(19, 12), 1, time.Time{}, true},
	} {
		s := NewSchedule(test.plan, test.first, test.through, test.newest, nil)
		check.Equal(t, len(s.Looks), test.looks, "%s: %d looks, next %s, end %v", test.name, len(s.Looks), s.Next,
			s.HasEnd())
		check.That(t, s.Next.Equal(test.next), "%s: %d looks, next %s, end %v", test.name, len(s.Looks), s.Next,
			s.HasEnd())
		check.Equal(t, s.HasEnd(), test.hasEnd, "%s: %d looks, next %s, end %v", test.name, len(s.Looks), s.Next,
			s.HasEnd())
		number, end := s.NextAfter(test.through)
		check.That(t, end.Equal(test.next), "%s: the next look is %d on %s", test.name, number, end)
		check.That(t, (end.IsZero() || number == test.looks+1), "%s: the next look is %d on %s", test.name, number, end)
		check.That(t, s.Maturity() == 8*24*time.Hour, "maturity %s", s.Maturity())
	}
}
