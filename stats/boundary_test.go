package stats

import (
	"math"
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// criticalValues returns the critical values for cumulative spending at each look.
func criticalValues(information, spent []float64) []float64 {
	var b boundary
	values := make([]float64, len(information))
	for i := range values {
		values[i], _ = b.addLook(information[i], spent[i])
	}
	return values
}

// spendings returns the rule's spending at each day of a plan.
func spendings(days []float64, planned, a float64) []float64 {
	spent := make([]float64, len(days))
	for i, day := range days {
		spent[i] = SpentAlpha(day/planned, a)
	}
	return spent
}

// equal fails unless the values agree with the published digits.
func equal(t *testing.T, got, want []float64, digit float64) {
	t.Helper()
	must.Equal(t, len(got), len(want), "%v for %v", got, want)
	for i := range got {
		check.That(t, math.Abs(got[i]-want[i]) <= 0.5*digit*(1+1e-6), "%d: %.6f, want %v (%v)", i+1, got[i], want[i],
			got)
	}
}

// TestCriticalValuesOfGsDesign compares with gsDesign's two-sided designs (test.type = 2) of five equal looks at alpha
// .05.
func TestCriticalValuesOfGsDesign(t *testing.T) {
	information := []float64{1, 2, 3, 4, 5}
	z := normalQuantile(.025 / 2)
	var obrien, hwang []float64
	for _, i := range information {
		obrien = append(obrien, 4*normalSurvival(z/math.Sqrt(i/5)))
		hwang = append(hwang, .05*math.Expm1(4*i/5)/math.Expm1(4))
	}
	equal(t, criticalValues(information, obrien), []float64{4.8769, 3.3570, 2.6803, 2.2898, 2.0310}, 1e-4)
	equal(t, criticalValues(information, hwang), []float64{3.2527, 2.9860, 2.6917, 2.3737, 2.0253}, 1e-4)
}

// TestCriticalValuesOfTheRule has the figures of the specification.
func TestCriticalValuesOfTheRule(t *testing.T) {
	month := []float64{7, 14, 21, 28, 35, 42}
	for _, test := range []struct {
		name              string
		information, days []float64
		planned, a        float64
		want              []float64
	}{
		{"28 days", month, month, 28, .05, []float64{3.170, 2.835, 2.458, 2.036, 2.738, 2.971}},
		{"14 days", month[:3], month[:3], 14, .05, []float64{2.767, 2.003, 2.836}},
		{"28 days, no look 1", month[1:4], month[1:4], 28, .05, []float64{2.767, 2.451, 2.034}},
		{"I = 1, 2, 4, 8", []float64{1, 2, 4, 8}, month[:4], 28, .05, []float64{3.170, 2.835, 2.484, 2.087}},
		{"three treatments", month[:4], month[:4], 28, NewLookDesign(.05, []float64{1, 1, 1, 1}).Level, []float64{3.444, 3.139, 2.800, 2.428}},
	} {
		t.Run(test.name, func(t *testing.T) {
			equal(t, criticalValues(test.information, spendings(test.days, test.planned, test.a)), test.want, 1e-3)
		})
	}
	equal(t, []float64{NewLookDesign(.05, []float64{1, 1, 1, 1}).Level}, []float64{.018825}, 1e-6)
}

// TestBoundaryByAnotherIntegration recomputes the probability that each look spends. It carries the density on a
// uniform grid of the score with Simpson's weights, from one look to the next, and does not use paths.
func TestBoundaryByAnotherIntegration(t *testing.T) {
	for _, information := range [][]float64{
		{7, 14, 21, 28, 35, 42},
		{1, 1.3, 4, 4.1, 9},
		{100, 100.2, 250},
		{3, 3.01, 3.1, 40},
	} {
		spent := spendings([]float64{7, 14, 21, 28, 35, 42}[:len(information)], 28, .05)
		critical := criticalValues(information, spent)
		errs := make([]float64, len(critical))
		before := 0.0
		for k, got := range simpsonCrossings(information, critical) {
			errs[k] = math.Abs(got - (spent[k] - before))
			before = spent[k]
			check.That(t, errs[k] <= 1e-9, "I = %v: look %d spends %.3g more than planned", information, k+1, errs[k])
		}
		t.Logf("I = %v: errors of the spending %.1e", information, errs)
	}
}

// simpsonCrossings returns the probability of each look that |Z| is first beyond its critical value there.
func simpsonCrossings(information, critical []float64) []float64 {
	const n = 1500
	probabilities := make([]float64, len(information))
	at, mass, last := []float64{0}, []float64{1}, 0.0
	for k, info := range information {
		sd, bound := math.Sqrt(info-last), critical[k]*math.Sqrt(info)
		for j, y := range at {
			probabilities[k] += mass[j] * (math.Erfc((bound-y)/sd/math.Sqrt2) + math.Erfc((bound+y)/sd/math.Sqrt2)) / 2
		}
		step := 2 * bound / n
		next, weight := make([]float64, n+1), make([]float64, n+1)
		for i := range next {
			next[i] = -bound + float64(i)*step
			sum := 0.0
			for j, y := range at {
				if u := (next[i] - y) / sd; u > -9 && u < 9 {
					sum += mass[j] * math.Exp(-u*u/2)
				}
			}
			simpson := float64(2 + 2*(i%2))
			if i == 0 || i == n {
				simpson = 1
			}
			weight[i] = sum / (sd * math.Sqrt(2*math.Pi)) * simpson * step / 3
		}
		at, mass, last = next, weight, info
	}
	return probabilities
}

func TestBoundaryCarriesSpending(t *testing.T) {
	var b boundary
	b.addLook(1, .001)
	for _, test := range []struct {
		information float64
		reason      Reason
	}{
		{0, ReasonTooFewVisitors},
		{math.NaN(), ReasonTooFewVisitors},
		{math.Inf(1), ReasonTooFewVisitors},
		{.5, ReasonNoNewVisitors},
		{1.0009, ReasonNoNewVisitors},
	} {
		c, reason := b.addLook(test.information, .02)
		check.Equal(t, c, 0, "I = %v: %v %v", test.information, c, reason)
		check.Equal(t, reason, test.reason, "I = %v: %v %v", test.information, c, reason)
	}
	skipped, _ := b.addLook(2, .03)
	equal(t, []float64{skipped}, criticalValues([]float64{1, 2}, []float64{.001, .03})[1:], 1e-12)
	c, _ := b.addLook(3, .03+1e-14)
	check.That(t, c == largestCritical, "c = %v where nothing is spent", c)
}

// TestBoundaryOfLedger checks that restored looks give the same next value.
func TestBoundaryOfLedger(t *testing.T) {
	days := []float64{7, 14, 21, 28}
	spent := spendings(days, 28, .05)
	want := criticalValues(days, spent)
	var b boundary
	for k := range days {
		next := b
		c, _ := next.addLook(days[k], spent[k])
		check.That(t, c == want[k], "look %d: %v, want %v", k+1, c, want[k])
		b.restoreLook(days[k], spent[k], want[k])
		b.restoreLook(days[k], 1, want[k]) // not a new look
	}
}

// TestCriticalValuesFall checks that every critical value decreases in the level and in the spending of its look, and
// that only the ratios of I matter.
func TestCriticalValuesFall(t *testing.T) {
	days := []float64{7, 14, 21, 28, 35, 42, 49, 56}
	last := criticalValues(days, spendings(days, 28, 1e-9))
	for a := 3e-9; a < .99; a *= 3 {
		now := criticalValues(days, spendings(days, 28, a))
		for k := range now {
			check.That(t, now[k] < last[k], "level %g, look %d: %v, at a third of it %v", a, k+1, now[k], last[k])
		}
		last = now
	}
	scaledDays := make([]float64, len(days))
	for i, day := range days {
		scaledDays[i] = day * 1e9
	}
	equal(t, criticalValues(scaledDays, spendings(days, 28, .05)), criticalValues(days, spendings(days, 28, .05)),
		1e-11)
}

func TestSpend(t *testing.T) {
	for _, test := range []struct{ tau, alpha, want float64 }{
		{0, .05, 0},
		{-1, .05, 0},
		{math.NaN(), .05, 0},
		{.5, 0, 0},
		{1, .05, .0475},
		{2, .05, .04875},
		{math.Inf(1), .05, .05},
		{.5, .05, .0475 * (1 - math.Exp(2)) / (1 - math.Exp(4))},
	} {
		got := SpentAlpha(test.tau, test.alpha)
		check.That(t, math.Abs(got-test.want) <= 1e-15, "Spend(%v, %v) = %v, want %v", test.tau, test.alpha, got,
			test.want)
	}
}

// pValueByRoot returns the level whose critical value at the last look is z.
func pValueByRoot(days []float64, planned, z float64) float64 {
	excess := func(logA float64) float64 {
		return criticalValues(days, spendings(days, planned, math.Exp(logA)))[len(days)-1] - z
	}
	low, high := math.Log(1e-12), math.Log(.999)
	if excess(high) > 0 {
		return 1
	}
	for high-low > 1e-11 {
		if middle := (low + high) / 2; excess(middle) > 0 {
			low = middle
		} else {
			high = middle
		}
	}
	return math.Exp(low)
}

func TestLadder(t *testing.T) {
	worst := 0.0
	for _, days := range [][]float64{{7}, {7, 14, 21, 28}, {7, 21, 28, 35, 42, 49}, {1, 2, 3, 4, 5, 6}} {
		var l ladder
		for _, day := range days {
			l.looks = append(l.looks, LookPoint{Tau: day / 28, Information: day})
		}
		last := len(days) - 1
		for _, z := range []float64{.2, .9, 1.7, 2.5, 3.3, 4.7, 5.9} {
			got, want := l.pValue(last, z), pValueByRoot(days, 28, z)
			if difference := math.Abs(got/want - 1); want < .1 && difference > 1e-6 || difference > 3e-5 {
				t.Errorf("days %v, z = %v: p = %.9g, want %.9g", days, z, got, want)
			} else if want < .1 {
				worst = math.Max(worst, difference)
			}
		}
		got := l.pValue(last, 40)
		check.That(t, got >= 1e-12*(1-1e-9), "days %v: p = %v at z = 40", days, got)
		check.That(t, got <= 4e-11, "days %v: p = %v at z = 40", days, got)
	}
	t.Logf("largest relative error of a p below .1: %.1e", worst)
}
