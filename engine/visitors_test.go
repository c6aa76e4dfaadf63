package engine

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"lifthouse/engine/facts"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
	"lifthouse/schema/schematest/worlds"
	"lifthouse/stats"
)

// TestReportsEqualTheirVisitors computes random reports again from the files of their visitors.
func TestReportsEqualTheirVisitors(t *testing.T) {
	w := worlds.New(3)
	w.Visitors = 400
	events := append(w.Events(1, 3000), w.Events(2, 3000)...)
	in := newStored(t, schematest.OpenMigrated(t), events)
	owned := drawResources(w, 1, 2)
	visitors := 0
	for i := range tier.Of(30, 500) {
		r := drawRequest(w, 1+w.Int64N(2))
		r.Interval = ""
		if i%3 > 0 { // few visitors have the values of all filters
			r.Filters.Lists, r.Filters.Texts = nil, nil
		}
		p := must.Get(plan.New(r, owned))(t)
		x, found := in.read(t,
			&reportQuery{Plan: p, Store: in.engine.facts.Store, Stored: facts.Stored{Ingested: accepted}})
		visitors += compareVisitors(t, in.engine, x, found)
		if t.Failed() {
			t.FailNow()
		}
	}
	check.That(t, visitors >= tier.Of(600, 10_000), "the files have %d visitors", visitors)
}

// compareVisitors compares the results of a report with results from the file of its visitors, and returns their
// number.
func compareVisitors(t worlds.TB, e *Engine, x *reportQuery, found *moments.Rows) int {
	t.Helper()
	var file bytes.Buffer
	must.OK(t, e.writeVisitors(t.Context(), x.Question, &file))
	visitors := must.Get(parquet.Read[facts.Visitor](bytes.NewReader(file.Bytes()), int64(file.Len())))(t)
	whole, sliced := map[moments.GroupKey]moments.Moments{}, map[moments.GroupKey]moments.Moments{}
	for i := range visitors {
		m := momentsOf(found, &visitors[i])
		of := moments.GroupKey{VariationID: visitors[i].VariationID}
		if len(x.SharePeriods) > 0 {
			of.Period = plan.PeriodAt(x.SharePeriods, visitors[i].FirstView)
		}
		whole[of] = whole[of].Merge(m)
		of.Dimension = attributeOf(&visitors[i], string(x.Dimension))
		sliced[of] = sliced[of].Merge(m)
	}
	again := *found
	again.Whole, again.Slices = rowsOfSums(whole), rowsOfSums(sliced)
	for _, r := range found.Whole { // the file lacks immature visitors
		if r.Immature {
			again.Whole = append(again.Whole, r)
		}
	}
	got, want := result.New(x.Plan, &again, nil), result.New(x.Plan, found, nil)
	text := func(r *result.Report) string {
		shown := []string{written(t, r.Totals) + written(t, r.Variations)}
		for _, s := range r.Breakdown {
			if s.Totals.Visitors > 0 { // a value may have only visitors who do not count
				shown = append(shown, s.Value+written(t, s.Totals)+written(t, s.Variations))
			}
		}
		slices.Sort(shown) // values with equal numbers of visitors may differ in those who do not count
		return strings.Join(shown, "\n")
	}
	g, w := text(got), text(want)
	check.That(t, g == w, "from the visitors\n%s\nthe report\n%s\n%+v", g, w, x.Plan)
	return len(visitors)
}

func rowsOfSums(of map[moments.GroupKey]moments.Moments) (rows []moments.GroupMoments) {
	for key, m := range of {
		rows = append(rows, moments.GroupMoments{GroupKey: key, Moments: m})
	}
	return rows
}

// momentsOf returns the sums of one visitor of a report.
func momentsOf(found *moments.Rows, v *facts.Visitor) moments.Moments {
	count := func(is bool) (n int64) {
		if is {
			n = 1
		}
		return n
	}
	units := func(amount float64) *big.Int { return big.NewInt(int64(math.Round(amount * schema.MoneyScale))) }
	sums := func(n *big.Int) stats.Sums { return stats.Sums{Sum: n, Squares: new(big.Int).Mul(n, n)} }
	amounts := func(amount float64) moments.Amounts {
		return moments.Amounts{Sums: sums(units(amount)), Nonzero: count(amount != 0), Negative: count(amount < 0)}
	}
	from, to := plan.RecentPeriod(found.Through)
	m := moments.Moments{
		Visitors: 1, Recent: count(!v.FirstView.Before(from) && v.FirstView.Before(to)), Views: int64(v.Views),
		Actions: moments.Actions{
			Clicks: int64(v.Clicks), Submits: int64(v.Submits), Completions: int64(v.Completions),
			Conversions: int64(v.Conversions), Contacts: int64(v.Contacts),
		},
		Converted: count(v.GoalsReached > 0), Completed: count(v.Completions > 0), Conversion: count(v.Conversions > 0),
		Goals: sums(big.NewInt(int64(v.GoalsReached))),
		Value: amounts(v.UncappedValue), Profit: amounts(v.UncappedProfit), ExtraValue: amounts(v.ExtraValue),
		ValueGoals: new(big.Int).Mul(units(v.UncappedValue), big.NewInt(int64(v.GoalsReached))),
	}
	if found.Cap != nil {
		value, profit := amounts(v.Value), amounts(v.Profit)
		m.CappedRemainder = moments.CappedRemainder{
			Visitors: count(v.Value != v.UncappedValue), Value: without(m.Value, value),
			Profit: without(m.Profit, profit),
		}
	}
	return m
}

// without returns amounts minus a part of them.
func without(all, part moments.Amounts) moments.Amounts {
	return moments.Amounts{
		Sums: stats.Sums{
			Sum:     new(big.Int).Sub(all.Sum, part.Sum),
			Squares: new(big.Int).Sub(all.Squares, part.Squares),
		},
		Nonzero: all.Nonzero - part.Nonzero, Negative: all.Negative - part.Negative,
	}
}

// attributeOf returns the value of an attribute, or "" for no attribute.
func attributeOf(v *facts.Visitor, name string) string {
	for field, value := range reflect.ValueOf(&v.Attributes).Elem().Fields() {
		if column, _, _ := strings.Cut(field.Tag.Get("parquet"), ","); column == name {
			return value.String()
		}
	}
	return ""
}

// TestVisitorsEndWithTheirReader checks that the reading of visitors ends when the file cannot be written.
func TestVisitorsEndWithTheirReader(t *testing.T) {
	w := worlds.New(4)
	in := newStored(t, schematest.OpenMigrated(t), w.Events(1, 300))
	reader, writer := io.Pipe()
	_ = reader.Close()
	p := must.Get(plan.New(query.Request{AccountID: 1, SubjectID: 1}, drawResources(w, 1)))(t)
	x := &reportQuery{Plan: p, Store: in.engine.facts.Store}
	err := in.engine.writeVisitors(t.Context(), x.Question, writer)
	check.That(t, errors.Is(err, io.ErrClosedPipe), "%v, want the error of the writer", err)
}
