package stats

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"lifthouse/schema/schematest/check"
)

// unsound returns the first invariant that a comparison violates, or "".
func unsound(c Comparison, o Options) string {
	if path := notFinite(reflect.ValueOf(c), ""); path != "" {
		return path + " is not finite"
	}
	for name, e := range map[string]Effect{"difference": c.Difference, "lift": c.Lift} {
		if law := unsoundEffect(e); law != "" {
			return name + ": " + law
		}
	}
	if !slices.Contains([]Verdict{VerdictBetter, VerdictWorse, VerdictInconclusive, VerdictInsufficientData},
		c.Verdict) {
		return "no verdict"
	}
	if (c.Verdict == VerdictBetter || c.Verdict == VerdictWorse) && !c.Significant {
		return "a verdict without significance"
	}
	if c.Reasons == nil {
		return "reasons are nil"
	}
	alpha := o.Alpha()
	if alpha == 0 && (c.Significant || c.Difference.Interval != nil || c.Lift.Interval != nil) {
		return "significant or with an interval at level 100"
	}
	if (c.Bayesian == nil) == (c.Frequentist == nil) {
		return "both methodologies, or neither"
	}
	if c.Bayesian != nil {
		return unsoundBayesian(c, alpha)
	}
	return unsoundFrequentist(c, alpha)
}

func unsoundEffect(e Effect) string {
	missing := e.Value == nil || e.Interval == nil || e.Interval[0] == nil || e.Interval[1] == nil
	if missing != (e.Reason != "") {
		return fmt.Sprintf("reason %q, missing %v", e.Reason, missing)
	}
	if e.Interval == nil {
		return ""
	}
	lower, upper := ends(e.Interval)
	if lower > upper {
		return "interval with lower above upper"
	}
	return ""
}

func unsoundBayesian(c Comparison, alpha float64) string {
	b := c.Bayesian
	if missing := b.ChanceToBeatControl == nil || b.ExpectedLoss == nil ||
		b.ExpectedLossControl == nil; missing != (b.Reason != "") {
		return "chance, losses and reason"
	}
	if b.ChanceToBeatControl == nil {
		return ""
	}
	if *b.ChanceToBeatControl < 0 || *b.ChanceToBeatControl > 1 {
		return "chance out of range"
	}
	if (b.ExpectedLoss == nil) != (c.Difference.Observed != nil && c.Difference.Value == nil) {
		return "loss and baseline"
	}
	if b.ExpectedLoss != nil && (*b.ExpectedLoss < 0 || *b.ExpectedLossControl < 0) {
		return "loss out of range"
	}
	return unsoundDuality(c.Significant, c.Difference.Interval, c.Lift.Interval, c.Difference.Value, alpha)
}

func unsoundFrequentist(c Comparison, alpha float64) string {
	f := c.Frequentist
	if (f.PValue == nil) != (f.Reason != "") {
		return "p and reason"
	}
	if f.PValue == nil {
		return ""
	}
	if !(*f.PValue >= 0 && *f.PValue <= *f.AdjustedPValue && *f.AdjustedPValue <= 1) {
		return "p out of range"
	}
	if c.Significant != (*f.AdjustedPValue < alpha) {
		return "significance is not p < alpha"
	}
	if (f.Test != TestScore) != (f.DegreesOfFreedom != nil) {
		return "degrees of freedom"
	}
	return unsoundDuality(c.Significant, c.Difference.Interval, c.Lift.Interval, c.Difference.Value, alpha)
}

// unsoundDuality checks that the intervals exclude 0 exactly if the comparison is significant. The lift's interval is
// checked only if its end on the side of 0 is finite.
func unsoundDuality(significant bool, differences, lifts *Interval, d *float64, alpha float64) string {
	if alpha == 0 || differences == nil || d == nil {
		return ""
	}
	if differences.Excludes(0) != significant {
		return "the interval of the difference contradicts p"
	}
	if lifts == nil {
		return ""
	}
	deciding := lifts[0]
	if differences[1] != nil && *differences[1] < 0 {
		deciding = lifts[1]
	}
	if deciding != nil && lifts.Excludes(0) != significant {
		return "the interval of the lift contradicts p"
	}
	return ""
}

func ends(i *Interval) (lower, upper float64) {
	lower, upper = math.Inf(-1), math.Inf(1)
	if i[0] != nil {
		lower = *i[0]
	}
	if i[1] != nil {
		upper = *i[1]
	}
	return lower, upper
}

// notFinite returns the path of a float in v that is NaN, infinite or a negative zero, or "".
func notFinite(v reflect.Value, path string) string {
	switch v.Kind() {
	case reflect.Float64:
		if !isFinite(v.Float()) || (v.Float() == 0 && math.Signbit(v.Float())) {
			return path
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return notFinite(v.Elem(), path)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if bad := notFinite(v.Field(i), path+"."+v.Type().Field(i).Name); bad != "" {
				return bad
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if bad := notFinite(v.Index(i), fmt.Sprintf("%s[%d]", path, i)); bad != "" {
				return bad
			}
		}
	default:
	}
	return ""
}

// mustSound fails the test if a comparison violates an invariant.
func mustSound(tb testing.TB, control Sample, treatments []Sample, o Options) []Comparison {
	tb.Helper()
	comparisons := Compare(control, treatments, o)
	for i, c := range comparisons {
		check.Equal(tb, unsound(c, o), "", "Compare(%+v, %+v, %+v)[%d]", control, treatments, o, i)
	}
	return comparisons
}

func mustFinite(tb testing.TB, v any) {
	tb.Helper()
	check.Equal(tb, notFinite(reflect.ValueOf(v), ""), "", "%T is not finite: %+v", v, v)
}
