package stats

import (
	"math"
	"testing"

	"lifthouse/schema/schematest/check"
)

// bruteZ returns the score statistic of pt = r pc + δ by its definition: the restricted likelihood is maximized over pc
// by bisection of its derivative.
func bruteZ(t table, r, delta float64) float64 {
	lower, upper := math.Max(0, -delta/r), math.Min(1, (1-delta)/r)
	derivative := func(pc float64) float64 {
		pt := r*pc + delta
		sum := 0.0
		add := func(count, by, over float64) {
			if count > 0 {
				sum += count * by / over
			}
		}
		add(t.xt, r, pt)
		add(t.nt-t.xt, -r, 1-pt)
		add(t.xc, 1, pc)
		add(t.nc-t.xc, -1, 1-pc)
		return sum
	}
	for range 200 {
		middle := lower + (upper-lower)/2
		if derivative(middle) > 0 {
			lower = middle
		} else {
			upper = middle
		}
	}
	pc := lower + (upper-lower)/2
	pt := math.Min(math.Max(r*pc+delta, 0), 1)
	variance := (pt*(1-pt)/t.nt + r*r*pc*(1-pc)/t.nc) * t.totalVisitors() / (t.totalVisitors() - 1)
	distance := t.xt/t.nt - r*t.xc/t.nc - delta
	if variance <= 0 {
		return math.Copysign(math.Inf(1), distance)
	}
	return distance / math.Sqrt(variance)
}

// TestScoreIntervalsAgainstBruteForce checks that at every end of an interval the score statistic, by brute force,
// crosses the critical value.
func TestScoreIntervalsAgainstBruteForce(t *testing.T) {
	r := newRand(21)
	for range rounds(20_000) {
		control := randomRate(r)
		control.Visitors, control.Converted = control.Visitors%200_000+1, control.Converted%200_000
		control.Converted = min(control.Converted, control.Visitors)
		treatment := randomRival(r, control)
		table := newTable(control, treatment)
		q := normalQuantile((1 - float64(levels[r.IntN(4)])/100) / 2)
		significant := math.Abs(table.z()) > q
		differences := table.differenceBounds(q, significant)
		crosses(t, table, "lower difference", differences.lower, 1e-7*math.Max(math.Abs(differences.lower), 1e-3), q,
			func(x float64) float64 { return bruteZ(table, 1, x) })
		crosses(t, table, "upper difference", differences.upper, 1e-7*math.Max(math.Abs(differences.upper), 1e-3), -q,
			func(x float64) float64 { return bruteZ(table, 1, x) })
		lifts := table.liftInterval(q, significant)
		crosses(t, table, "lower lift", lifts.lower, 1e-7*(1+lifts.lower), q,
			func(x float64) float64 { return bruteZ(table, 1+x, 0) })
		if !math.IsInf(lifts.upper, 1) {
			crosses(t, table, "upper lift", lifts.upper, 1e-7*(1+lifts.upper), -q,
				func(x float64) float64 { return bruteZ(table, 1+x, 0) })
		}
	}
}

// crosses checks that z decreases through q within width of x, unless x is the boundary of the parameter.
func crosses(t *testing.T, table table, what string, x, width, q float64, z func(float64) float64) {
	t.Helper()
	if x <= -1 || (x >= 1 && what == "upper difference") {
		return
	}
	before, after := z(math.Max(x-width, -1)), z(x+width)
	check.That(t, before >= q-1e-9, "%+v: %s %v: z goes from %v to %v, not through %v", table, what, x, before, after,
		q)
	check.That(t, after <= q+1e-9, "%+v: %s %v: z goes from %v to %v, not through %v", table, what, x, before, after, q)
}
