package calibration

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

func TestQuantiles(t *testing.T) {
	for _, test := range []struct {
		n               int
		p, tail         float64
		lowest, highest int
	}{
		{10, 0.5, 0.011, 2, 8}, // P(X > 8) = 11/1024
		{10, 0.5, 0.0107, 1, 9},
		{10, 0, 1e-6, 0, 0},
		{10, 1, 1e-6, 10, 10},
		{3, 0.5, 1e-9, 0, 3},
		{1_000_000, 0.05, 1e-6, 48964, 51043}, // about 4.75 standard deviations of 217.9
	} {
		low, high := lowerQuantile(test.n, test.p, test.tail), upperQuantile(test.n, test.p, test.tail)
		check.That(t, max(low-test.lowest, test.lowest-low, high-test.highest, test.highest-high) <= test.n/100_000,
			"n=%d p=%g tail=%g: %d to %d, want %d to %d", test.n, test.p, test.tail, low, high, test.lowest,
			test.highest)
	}
}

// drawTallies draws the tallies of a full run. The error rates are factor times
// the nominal rates. Coverage and power are nominal.
func drawTallies(o *Options, factor float64) map[tallyKey]*tally {
	random := rand.New(rand.NewPCG(5, 5))
	draw := func(n int, p float64) int {
		count := 0
		for range n {
			countIf(&count, random.Float64() < p)
		}
		return count
	}
	tallies := map[tallyKey]*tally{}
	for _, r := range o.rules {
		for _, metric := range metrics {
			for i := range shapes {
				t := &tally{}
				null, effect, alpha := o.Null/len(shapes), o.Effect/len(shapes), r.alpha()
				nominalPower := powerCell(t, r, metric, &shapes[i], o).Nominal
				t.null.experiments, t.null.withDays, t.null.withLooks = null, null, null
				t.null.significant = draw(null, min(1, factor*alpha))
				t.null.decided = t.null.significant / 2
				t.effect.experiments = effect
				t.effect.significant = draw(effect, nominalPower)
				t.all.experiments, t.all.withLooks = null+effect, null+effect
				t.all.difference, t.all.improvement = draw(null+effect, 1-alpha), draw(null+effect, 1-alpha)
				t.all.lookDifference, t.all.lookImprovement = null+effect, null+effect
				tallies[tallyKey{r, metric, shapes[i].name}] = t
			}
		}
	}
	return tallies
}

func TestWrongErrorRatesAreDetected(t *testing.T) {
	o := Defaults
	for _, test := range []struct {
		factor  float64
		outside bool
	}{{1, false}, {2, true}, {0.3, true}} {
		r := &Result{Cells: cellsOf(drawTallies(&o, test.factor), &o)}
		testCells(r)
		check.Equal(t, (r.Outside > 0), test.outside, "error rates multiplied by %g: %d of %d cells outside\n%s",
			test.factor, r.Outside, r.Tested, text(r))
		check.Equal(t, (r.Err() != nil), test.outside, "error rates multiplied by %g: %d of %d cells outside\n%s",
			test.factor, r.Outside, r.Tested, text(r))
		check.That(t, r.Tested >= 150, "error rates multiplied by %g: %d of %d cells outside\n%s", test.factor,
			r.Outside, r.Tested, text(r))
	}
}

func TestLevel100AllowsNoSignificance(t *testing.T) {
	o := Defaults
	o.rules = []rule{{catalogue.Frequentist, 100, 0}}
	tallies := drawTallies(&o, 1)
	tallies[tallyKey{o.rules[0], valuePerVisitor, "low"}].null.significant = 1
	r := &Result{Cells: cellsOf(tallies, &o)}
	if testCells(r); r.Outside != 1 {
		t.Errorf("one significant report: %d cells outside, want 1\n%s", r.Outside, text(r))
	}
}

// newComparison returns a comparison whose intervals are all equal.
func newComparison(value, low, high float64, significant bool) comparison {
	b := bounds{&low, &high}
	return comparison{
		variation: 1, value: &value, significant: significant, decided: significant, difference: b,
		improvement: b,
	}
}

func TestTally(t *testing.T) {
	even := &shapes[0] // with an effect: difference 0.05, improvement 0.5
	var n tally
	early := newComparison(0.1, 0.01, 0.2, true)
	n.addResults(&experiment{shape: even}, goalConversionRate, &results{
		final: []comparison{newComparison(0, -1, 1, false)},
		days:  [][]comparison{{}, {early}, {newComparison(0, -1, 1, false)}},
	})
	check.Equal(t, n.null.significant, 0, "significant on one day only: %+v", n)
	check.Equal(t, n.null.anyDay, 1, "significant on one day only: %+v", n)
	check.Equal(t, n.null.anyDayDecided, 1, "significant on one day only: %+v", n)
	check.Equal(t, n.null.anyLook, 0, "significant on one day only: %+v", n)
	check.Equal(t, n.all.difference, 1, "significant on one day only: %+v", n)
	check.Equal(t, n.all.lookDifference, 0, "significant on one day only: %+v", n)
	early.decided = false
	n.addResults(&experiment{shape: even}, goalConversionRate,
		&results{final: []comparison{early}, looks: [][]comparison{{early}}})
	check.Equal(t, n.null.anyLook, 1, "significant without a verdict: %+v", n)
	check.Equal(t, n.all.withLooks, 1, "significant without a verdict: %+v", n)
	check.Equal(t, n.all.lookDifference, 0, "significant without a verdict: %+v", n)
	check.Equal(t, n.null.significant, 1, "significant without a verdict: %+v", n)
	check.Equal(t, n.null.decided, 0, "significant without a verdict: %+v", n)
	n = tally{}
	n.addResults(&experiment{shape: even, effect: true}, goalConversionRate,
		&results{final: []comparison{newComparison(-0.05, 0.04, 0.06, true)}})
	check.Equal(t, n.effect.wrongSign, 1, "wrong sign: %+v", n)
	check.Equal(t, n.effect.significant, 1, "wrong sign: %+v", n)
	check.Equal(t, n.all.difference, 1, "wrong sign: %+v", n)
	check.Equal(t, n.all.improvement, 0, "wrong sign: %+v", n)
	check.Equal(t, n.all.withLooks, 0, "wrong sign: %+v", n)
	check.Equal(t, n.null.experiments, 0, "wrong sign: %+v", n)
	three := &shapes[2] // its second variation has no effect
	second := newComparison(-0.01, -1, 1, true)
	second.variation = 2
	n = tally{}
	n.addResults(&experiment{shape: three, effect: true}, valuePerVisitor,
		&results{final: []comparison{newComparison(2, 2, 3, false), second}})
	check.Equal(t, n.effect.significant, 0, "variation without effect: %+v, want no power and no wrong sign", n)
	check.Equal(t, n.effect.wrongSign, 0, "variation without effect: %+v, want no power and no wrong sign", n)
	check.Equal(t, n.all.difference, 1, "variation without effect: %+v, want no power and no wrong sign", n)
	check.Equal(t, n.all.improvement, 0, "variation without effect: %+v, want no power and no wrong sign", n)
	open := (bounds{nil, new(float64)})
	check.That(t, open.coversValue(-1e9), "an infinite bound does not limit the interval")
	check.That(t, !open.coversValue(1), "an infinite bound does not limit the interval")
	check.That(t, (bounds{}).coversValue(7), "an infinite bound does not limit the interval")
}

func TestEventsMatchTheTruth(t *testing.T) {
	o := Defaults
	o.Visitors = 15_000
	for i := range shapes {
		e := &experiment{id: int64(i + 1), effect: true, shape: &shapes[i]}
		var first, again bytes.Buffer
		lines := e.writeEvents(&first, &o)
		if e.writeEvents(&again, &o); !bytes.Equal(first.Bytes(), again.Bytes()) ||
			lines != strings.Count(first.String(), "\n") {
			t.Fatal("equal seeds generate different events")
		}
		visitors, buyers, value := map[int]float64{}, map[int]float64{}, map[int]float64{}
		for line := range strings.Lines(first.String()) {
			var event struct {
				Event       string
				VariationID int
				Value       float64
			}
			must.OK(t, json.Unmarshal([]byte(line), &event))
			if event.Event == "view" {
				visitors[event.VariationID]++
			} else {
				buyers[event.VariationID]++
				value[event.VariationID] += event.Value
			}
		}
		for v, share := range e.shape.shares {
			all, p := float64(e.visitorCount(&o)), e.conversionRate(v)
			near(t, e.shape.name+" visitors", visitors[v], all*float64(share)/100, math.Sqrt(all*float64(share)/100))
			near(t, e.shape.name+" buyers", buyers[v], visitors[v]*p, math.Sqrt(visitors[v]*p))
			difference, _ := e.trueEffect(valuePerVisitor, v)
			near(t, e.shape.name+" value", value[v]/visitors[v], difference+meanValue*e.conversionRate(0),
				meanValue*math.Sqrt(p*math.Exp(spread*spread)/visitors[v]))
		}
		o.Seed++
		if e.writeEvents(&again, &o); bytes.HasSuffix(again.Bytes(), first.Bytes()) {
			t.Error("another seed gives the same events")
		}
	}
}

func near(t *testing.T, what string, got, want, deviation float64) {
	t.Helper()
	check.That(t, math.Abs(got-want) <= 4.5*deviation, "%s: %g, want %g, a deviation is %g", what, got, want, deviation)
}

func TestPowerCell(t *testing.T) {
	o := Defaults
	c := powerCell(&tally{}, rule{catalogue.Frequentist, 95, 1}, goalConversionRate, &shapes[0], &o)
	if math.Abs(c.Nominal-0.669) > 0.001 ||
		c.Sense != Approximate { // 10 % against 15 % with 500 visitors each: z = 2.397
		t.Errorf("%+v", c)
	}
}
