package fold

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"lifthouse/engine/moments"
	"lifthouse/schema"
	"lifthouse/schema/schematest/check"
)

// bigSums are sums in the order of the column sums.
type bigSums [NumberOfSums]big.Int

func (s *bigSums) add(at int, n int64) { s[at].Add(&s[at], big.NewInt(n)) }

func (s *bigSums) equal(o *bigSums) bool {
	for i := range s {
		if s[i].Cmp(&o[i]) != 0 {
			return false
		}
	}
	return true
}

// naiveSums returns sums over visitors of their events before a time, and of a goal; 0: of all goals.
func naiveSums(groups []group, goal, until int64) *bigSums {
	s := &bigSums{}
	for _, g := range groups {
		if g.from >= until {
			continue
		}
		var kinds [8]int64
		var goals int64
		var totals [3]big.Int
		for _, e := range g.events {
			if e.At >= until {
				continue
			}
			kinds[e.Kind]++
			if e.Kind == moments.Goal && (goal == 0 || e.Goal == goal) {
				goals++
				amounts, _, known := naiveWorth(e)
				if !known {
					s.add(26, 1)
				}
				for i := range totals {
					totals[i].Add(&totals[i], big.NewInt(amounts[i]))
				}
				if amounts[0] < 0 {
					s.add(25, 1)
				}
			}
		}
		if goal == 0 {
			s.addVisitor(&kinds)
		}
		s.addGoals(goals, &totals)
	}
	return s
}

// addVisitor adds a visitor with these numbers of events by kind.
func (s *bigSums) addVisitor(kinds *[8]int64) {
	s.add(0, 1)
	s.add(1, kinds[moments.View])
	s.add(2, kinds[moments.Click])
	s.add(3, kinds[moments.Submit])
	s.add(4, kinds[moments.Completion])
	s.add(5, kinds[moments.Conversion])
	s.add(6, kinds[moments.Contact])
	if kinds[moments.Completion] > 0 {
		s.add(7, 1)
	}
	if kinds[moments.Conversion] > 0 {
		s.add(8, 1)
	}
}

// addGoals adds a visitor's number of goal events and their total amounts.
func (s *bigSums) addGoals(goals int64, totals *[3]big.Int) {
	s.add(9, goals)
	s.add(10, goals*goals)
	if goals > 0 {
		s.add(11, 1)
	}
	s[12].Add(&s[12], new(big.Int).Mul(&totals[0], big.NewInt(goals)))
	for i := range totals {
		total, at := &totals[i], 13+4*i
		s[at].Add(&s[at], total)
		s[at+1].Add(&s[at+1], new(big.Int).Mul(total, total))
		if total.Sign() != 0 {
			s.add(at+2, 1)
		}
		if total.Sign() < 0 {
			s.add(at+3, 1)
		}
	}
}

// visitorsOf returns the visitors of a subject and variation, those of the first view's day;
// -1: of all days.
func visitorsOf(groups []group, subject schema.Subject, variation string, first int64) []group {
	var some []group
	for _, g := range groups {
		if g.subject == subject && g.variation == variation && (first < 0 || g.from/day == first) {
			some = append(some, g)
		}
	}
	return some
}

// sumOfDays returns the sums of the cells of a first day with events until a day.
func (c Cells) sumOfDays(subject schema.Subject, goal int64, variation string, first, until int64) *bigSums {
	s := &bigSums{}
	for key, sums := range c {
		if key.Grain == OfDay && key.Subject == subject && key.Goal == goal && key.Variation == variation &&
			key.First == first && key.First+key.Day <= until {
			for i := range s {
				s[i].Add(&s[i], bigOf(sums.CellSums[i]))
			}
		}
	}
	return s
}

// manyVisitors returns the events of some visitors.
func (w world) manyVisitors() [][]Event {
	visitors := make([][]Event, 1+w.IntN(12))
	for i := range visitors {
		visitors[i] = w.visitor(uint64(i))
	}
	return visitors
}

func groupsOf(visitors [][]Event) []group {
	var groups []group
	for _, events := range visitors {
		groups = append(groups, naiveGroups(events)...)
	}
	return groups
}

// checkCells checks all cells of visitors against the plain loops.
func checkCells(t rapid.TB, w world, cells Cells, visitors [][]Event) {
	t.Helper()
	groups := groupsOf(visitors)
	for key, sums := range cells {
		of := visitorsOf(groups, key.Subject, key.Variation, -1)
		check.That(t, len(of) != 0 || sums.CellSums == (CellSums{}), "a cell without visitors: %+v: %+v", key, sums)
		check.That(t, (key.Grain != OfAll || key.First == 0 && key.Day == 0), "no such cell: %+v", key)
		check.That(t, (key.Grain != OfDay || key.Variation != "" && key.Day >= 0), "no such cell: %+v", key)
		check.That(t, (key.Grain == OfAll || key.Grain == OfDay), "no such cell: %+v", key)
	}
	type cell struct {
		subject   schema.Subject
		variation string
	}
	checked := map[cell]bool{}
	for _, g := range groups {
		if checked[cell{g.subject, g.variation}] {
			continue
		}
		checked[cell{g.subject, g.variation}] = true
		for goal := int64(0); goal <= goalsOfWorld; goal++ {
			checkAll(t, cells, groups, CellKey{Subject: g.subject, Grain: OfAll, Goal: goal, Variation: g.variation})
			if g.variation != "" {
				checkDays(t, w, cells, groups, CellKey{Subject: g.subject, Goal: goal, Variation: g.variation})
			}
		}
		checkReturns(t, w, cells, visitorsOf(groups, g.subject, g.variation, -1))
	}
}

func checkAll(t rapid.TB, cells Cells, groups []group, key CellKey) {
	t.Helper()
	got := &bigSums{}
	if sums := cells[key]; sums != nil {
		for i := range got {
			got[i].Set(bigOf(sums.CellSums[i]))
		}
	}
	want := naiveSums(visitorsOf(groups, key.Subject, key.Variation, -1), key.Goal, math.MaxInt64)
	check.That(t, got.equal(want), "%+v: sums %v, want %v", key, got, want)
}

// checkDays checks the sums until the end of each day, of the visitors of each first day and of all of them.
func checkDays(t rapid.TB, w world, cells Cells, groups []group, key CellKey) {
	t.Helper()
	from := w.start / day
	for until := from; until < from+5; until++ {
		whole := &bigSums{}
		for first := from; first < from+5; first++ {
			got := cells.sumOfDays(key.Subject, key.Goal, key.Variation, first, until)
			want := naiveSums(visitorsOf(groups, key.Subject, key.Variation, first), key.Goal, (until+1)*day)
			check.That(t, got.equal(want), "%+v, first views of day %d, events until day %d: sums %v, want %v", key, first, until, got, want)
			for i := range whole {
				whole[i].Add(&whole[i], &got[i])
			}
		}
		want := naiveSums(visitorsOf(groups, key.Subject, key.Variation, -1), key.Goal, (until+1)*day)
		check.That(t, whole.equal(want), "%+v, events until day %d: sums %v, want %v", key, until, whole, want)
	}
}

// checkReturns checks, for each window of days, the number of visitors with events in the window whose first view was
// before it.
func checkReturns(t rapid.TB, w world, cells Cells, groups []group) {
	t.Helper()
	start := w.start / day
	for from := start; from < start+5; from++ {
		for to := from + 1; to <= start+5; to++ {
			var got, want int64
			for key, cell := range cells {
				if on := key.First + key.Day; key.Goal == Returns && key.Subject == groups[0].subject &&
					key.Variation == groups[0].variation && key.First < from && on >= from && on < to {
					got += cell.CountAt(Visitors)
				}
			}
			for _, g := range groups {
				if g.variation != "" && g.from < from*day && slices.ContainsFunc(g.events,
					func(e Event) bool { return e.At >= from*day && e.At < to*day }) {
					want++
				}
			}
			check.Equal(t, got, want, "%s %q, days %d to %d", groups[0].subject, groups[0].variation, from, to)
		}
	}
}

func TestCellsEqualThePlainSums(t *testing.T) {
	checkWorlds(t, 300, func(t *rapid.T, w world) {
		visitors, cells := w.manyVisitors(), Cells{}
		var together []FactRow
		for _, events := range visitors {
			rows := rowsOf(events)
			if together = append(together, rows...); w.IntN(2) == 0 {
				cells.AddRows(together, 1, true)
				together = nil
			}
		}
		cells.AddRows(together, 1, true)
		checkCells(t, w, cells, visitors)
	})
}

func TestSubtractedVisitorsLeaveTheCellsOfTheOthers(t *testing.T) {
	checkWorlds(t, 200, func(t *rapid.T, w world) {
		visitors, cells := w.manyVisitors(), Cells{}
		for _, events := range visitors {
			cells.AddRows(rowsOf(events), 1, true)
		}
		stay := w.IntN(len(visitors))
		for _, events := range visitors[stay:] {
			cells.AddRows(rowsOf(events), -1, true)
		}
		checkCells(t, w, cells, visitors[:stay])
		for _, events := range visitors[:stay] {
			cells.AddRows(rowsOf(events), -1, true)
		}
		for key, sums := range cells {
			check.Equal(t, sums.CellSums, CellSums{}, "%+v: sums %v of no visitor", key, sums)
		}
	})
}

// A refresh subtracts the visitor's former rows and adds the new ones.
func TestCellsFollowAVisitor(t *testing.T) {
	checkWorlds(t, 200, func(t *rapid.T, w world) {
		events, cells := w.visitor(7), Cells{}
		var former []FactRow
		for n := range events {
			rows := rowsOf(events[:n+1])
			cells.AddRows(former, -1, true)
			cells.AddRows(rows, 1, true)
			former = rows
		}
		checkCells(t, w, cells, [][]Event{events})
	})
}

func TestCellsWithoutDays(t *testing.T) {
	checkWorlds(t, 100, func(t *rapid.T, w world) {
		visitors, cells, withDays := w.manyVisitors(), Cells{}, Cells{}
		for _, events := range visitors {
			cells.AddRows(rowsOf(events), 1, false)
			withDays.AddRows(rowsOf(events), 1, true)
		}
		for key, sums := range withDays {
			switch got := cells[key]; {
			case key.Grain == OfDay && got != nil:
				t.Errorf("a cell of a day: %+v", key)
			case key.Grain == OfAll && (got == nil || *got != *sums):
				t.Errorf("%+v: sums %v, want %v", key, got, sums)
			}
		}
	})
}

func TestMomentsAreTheSums(t *testing.T) {
	var s CellSums
	for i := range s {
		s[i] = Int128{0, uint64(100 + i)}
	}
	m := s.AsMoments()
	got := []int64{
		m.Visitors, m.Views, m.Clicks, m.Submits, m.Completions, m.Conversions, m.Contacts, m.Completed, m.Conversion,
		m.Goals.Sum.Int64(), m.Goals.Squares.Int64(), m.Converted, m.ValueGoals.Int64(),
	}
	for _, a := range []moments.Amounts{m.Value, m.Profit, m.ExtraValue} {
		got = append(got, a.Sum.Int64(), a.Squares.Int64(), a.Nonzero, a.Negative)
	}
	var want []int64
	for i := range s[:NegativeGoals] { // they are no moments of a report
		want = append(want, int64(100+i))
	}
	check.That(t, slices.Equal(got, want), "moments %v, want %v", got, want)
}
