package calibration

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"lifthouse/schema/catalogue"
)

func TestBands(t *testing.T) {
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
		if low, high := lowest(test.n, test.p, test.tail), highest(test.n, test.p, test.tail); max(low-test.lowest, test.lowest-low, high-test.highest, test.highest-high) > test.n/100_000 {
			t.Errorf("%d of %g, tails of %g: %d to %d, want %d to %d", test.n, test.p, test.tail, low, high, test.lowest, test.highest)
		}
	}
}

// drawn are tallies of a full run whose error is a multiple of what it should
// be, and whose intervals cover and powers are as they should.
func drawn(o *Options, times float64) map[cellKey]*tally {
	random := rand.New(rand.NewPCG(5, 5))
	of := func(n int, p float64) int {
		count := 0
		for range n {
			tick(&count, random.Float64() < p)
		}
		return count
	}
	tallies := map[cellKey]*tally{}
	for _, r := range o.rules {
		for _, metric := range metrics {
			for i := range shapes {
				t := &tally{}
				null, effect, alpha := o.Null/len(shapes), o.Effect/len(shapes), r.alpha()
				theory := powerCell(r, metric, &shapes[i], 0, 1, o).Nominal
				t.null.experiments, t.null.looked = null, null
				t.null.significant = of(null, min(1, times*alpha))
				t.null.decided = t.null.significant / 2
				t.effect.experiments = effect
				t.effect.significant = of(effect, theory)
				t.all.experiments, t.all.looked = null+effect, null+effect
				t.all.difference, t.all.improvement = of(null+effect, 1-alpha), of(null+effect, 1-alpha)
				t.all.sequentialDifference, t.all.sequentialImprovement = null+effect, null+effect
				tallies[cellKey{r, metric, shapes[i].name}] = t
			}
		}
	}
	return tallies
}

func TestHalvedAndDoubledPValuesAreCaughtAtFullSize(t *testing.T) {
	o := Defaults
	for _, test := range []struct {
		times   float64
		outside bool
	}{{1, false}, {2, true}, {0.3, true}} {
		r := &Result{Cells: cellsOf(drawn(&o, test.times), &o)}
		judge(r)
		if (r.Outside > 0) != test.outside || (r.Err() != nil) != test.outside || r.Judged < 150 {
			t.Errorf("errors %g times what they should be: %d of %d cells outside\n%s", test.times, r.Outside, r.Judged, text(r))
		}
	}
}

func TestAtLevel100NothingMayBeSignificant(t *testing.T) {
	o := Defaults
	o.rules = []rule{{catalogue.Frequentist, 100, 0}}
	tallies := drawn(&o, 1)
	tallies[cellKey{o.rules[0], valuePerVisitor, "low"}].null.significant = 1
	r := &Result{Cells: cellsOf(tallies, &o)}
	if judge(r); r.Outside != 1 {
		t.Errorf("one is, and %d cells are outside\n%s", r.Outside, text(r))
	}
}

// compared is a comparison whose intervals are all the same.
func compared(value, low, high float64, significant bool) comparison {
	b := bounds{&low, &high}
	return comparison{variation: 1, value: &value, significant: significant, decided: significant, difference: b, improvement: b, sequentialDifference: b, sequentialImprovement: b}
}

func TestTally(t *testing.T) {
	even := &shapes[0] // a difference of 0.05 where there is an effect, an improvement of 0.5
	var n tally
	early := compared(0.1, 0.01, 0.2, true)
	n.count(&experiment{shape: even}, goalConversionRate, &reading{
		final: []comparison{compared(0, -1, 1, false)}, looks: [][]comparison{{}, {early}, {compared(0, -1, 1, false)}},
	})
	if n.null.significant != 0 || n.null.anyLook != 1 || n.null.anyDecided != 1 || n.null.sequential != 0 || n.all.difference != 1 || n.all.sequentialDifference != 0 {
		t.Errorf("significant at a look only: %+v", n)
	}
	early.sequential, early.decided = true, false
	n.count(&experiment{shape: even}, goalConversionRate, &reading{final: []comparison{early}, looks: [][]comparison{{early}}})
	if n.null.sequential != 1 || n.null.sequentialRule != 0 || n.null.significant != 1 || n.null.decided != 0 {
		t.Errorf("significant without a verdict: %+v", n)
	}
	n = tally{}
	n.count(&experiment{shape: even, effect: true}, goalConversionRate, &reading{final: []comparison{compared(-0.05, 0.04, 0.06, true)}})
	if n.effect.wrongSign != 1 || n.effect.significant != 1 || n.all.difference != 1 || n.all.improvement != 0 || n.all.looked != 0 || n.null.experiments != 0 {
		t.Errorf("the wrong sign: %+v", n)
	}
	three := &shapes[2] // whose second variation has no effect
	second := compared(-0.01, -1, 1, true)
	second.variation = 2
	n = tally{}
	n.count(&experiment{shape: three, effect: true}, valuePerVisitor, &reading{final: []comparison{compared(2, 2, 3, false), second}})
	if n.effect.significant != 0 || n.effect.wrongSign != 0 || n.all.difference != 1 || n.all.improvement != 0 {
		t.Errorf("a variation without effect has neither power nor a wrong sign: %+v", n)
	}
	if open := (bounds{nil, new(float64)}); !open.covers(-1e9) || open.covers(1) || !(bounds{}).covers(7) {
		t.Error("an unbounded end covers")
	}
}

func TestEventsHaveTheirTruth(t *testing.T) {
	o := Defaults
	o.Visitors = 15_000
	for i := range shapes {
		e := &experiment{id: int64(i + 1), effect: true, shape: &shapes[i]}
		var first, again bytes.Buffer
		lines := e.events(&first, &o)
		if e.events(&again, &o); !bytes.Equal(first.Bytes(), again.Bytes()) || lines != strings.Count(first.String(), "\n") {
			t.Fatal("the same seed gives other events")
		}
		visitors, buyers, value := map[int]float64{}, map[int]float64{}, map[int]float64{}
		for line := range strings.Lines(first.String()) {
			var event struct {
				Event       string
				VariationID int
				Value       float64
			}
			if err := json.Unmarshal([]byte(line), &event); err != nil {
				t.Fatal(err)
			}
			if event.Event == "view" {
				visitors[event.VariationID]++
			} else {
				buyers[event.VariationID]++
				value[event.VariationID] += event.Value
			}
		}
		for v, share := range e.shape.shares {
			all, p := float64(e.visitors(&o)), e.rateOf(v)
			near(t, e.shape.name+" visitors", visitors[v], all*float64(share)/100, math.Sqrt(all*float64(share)/100))
			near(t, e.shape.name+" buyers", buyers[v], visitors[v]*p, math.Sqrt(visitors[v]*p))
			difference, _ := e.truth(valuePerVisitor, v)
			near(t, e.shape.name+" value", value[v]/visitors[v], difference+meanValue*e.rateOf(0), meanValue*math.Sqrt(p*math.Exp(spread*spread)/visitors[v]))
		}
		o.Seed++
		if e.events(&again, &o); bytes.HasSuffix(again.Bytes(), first.Bytes()) {
			t.Error("another seed gives the same events")
		}
	}
}

func near(t *testing.T, what string, got, want, deviation float64) {
	t.Helper()
	if math.Abs(got-want) > 4.5*deviation {
		t.Errorf("%s: %g, want %g, a deviation is %g", what, got, want, deviation)
	}
}

func TestPowerIsThatOfTheNormalApproximation(t *testing.T) {
	o := Defaults
	c := powerCell(rule{catalogue.Frequentist, 95, 1}, goalConversionRate, &shapes[0], 0, 1, &o)
	if math.Abs(c.Nominal-0.669) > 0.001 || c.Sense != Approximate { // 10 % against 15 %, 500 each: z = 2.397
		t.Errorf("%+v", c)
	}
}

func TestOptionFaultsComeAtOnce(t *testing.T) {
	o := Options{Null: -1}
	for _, name := range []string{"experiments-aa -1", "together", "visitors 0", "parallel 0"} {
		if err := o.Fault(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not tell of %s", err, name)
		}
	}
	o = Defaults
	if err := o.Fault(); err != nil {
		t.Error(err)
	}
}

func TestThePictureHasEveryCellThatIsJudged(t *testing.T) {
	o := Defaults
	r := &Result{Cells: cellsOf(drawn(&o, 2), &o)}
	judge(r)
	picture, err := r.Plot()
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(picture, []byte("goalConversionRate, ")) + bytes.Count(picture, []byte("valuePerVisitor, ")); n != r.Judged {
		t.Errorf("%d rows, want %d", n, r.Judged)
	}
	if bytes.Count(picture, []byte("#C00000")) == 0 {
		t.Error("those outside cannot be told")
	}
}
