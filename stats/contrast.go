package stats

import "math"

// contrast compares one treatment with control, by the test for the metric's
// kind.
type contrast interface {
	// test returns the test, its statistic (positive if the treatment is above
	// control), its degrees of freedom (NaN if it has none) and its p-value.
	test() (name Test, statistic, nu, p float64)
	// quantile returns the critical value of the statistic with the given upper
	// tail.
	quantile(tail float64) float64
	// difference and lift return the observed effects, or NaN if there is none.
	difference() float64
	lift() float64
	// differences and lifts return the intervals at critical value q. They
	// exclude 0 exactly if significant is true. The reason explains a missing
	// end of lifts.
	differences(q float64, significant bool) bounds
	lifts(q float64, significant bool) (bounds, Reason)
	// always returns the contrast for the always-valid result. It is the same
	// for rates, and without Student's correction for means.
	always() contrast
	// z returns the statistic on the normal scale.
	z() float64
	// shared returns lambda of the family: the correlation of this contrast's z
	// with the part of z that control contributes.
	shared() float64
	// visitors returns the number of visitors in both variations.
	visitors() float64
}

// newContrast returns the contrast of two samples, or the reason why there is
// none.
func newContrast(control, treatment Sample, nonNegative bool) (contrast, Reason) {
	if reason := checkSample(control); reason != "" {
		return nil, reason
	}
	if reason := checkSample(treatment); reason != "" {
		return nil, reason
	}
	switch c := control.(type) {
	case Rate:
		if t, ok := treatment.(Rate); ok {
			return rates{newTable(c, t)}, ""
		}
	case Mean:
		if t, ok := treatment.(Mean); ok {
			return newWelch(c, t, nonNegative)
		}
	}
	return nil, ReasonInvalidData
}

// rates is the contrast of two rates by the score test.
type rates struct {
	table
}

func (r rates) test() (name Test, statistic, nu, p float64) {
	z := r.z()
	return TestScore, z, math.NaN(), 2 * normalSurvival(math.Abs(z))
}

func (r rates) always() contrast { return r }

func (r rates) quantile(tail float64) float64 { return normalQuantile(tail) }

func (r rates) lift() float64 {
	if r.xc == 0 {
		return math.NaN()
	}
	return r.cross() / (r.nt * r.xc)
}

func (r rates) differences(q float64, significant bool) bounds {
	return r.differenceInterval(q, significant)
}

func (r rates) lifts(q float64, significant bool) (bounds, Reason) {
	in := r.liftInterval(q, significant)
	if r.xc == 0 {
		return in, ReasonBaselineZero
	}
	return in, ""
}

func (r rates) shared() float64 { return math.Sqrt(r.nt / (r.nt + r.nc)) }

func (r rates) visitors() float64 { return r.total() }

// welch is the contrast of two means by Welch's test.
type welch struct {
	means
	student     student
	nonNegative bool
}

func newWelch(control, treatment Mean, nonNegative bool) (contrast, Reason) {
	switch {
	case control.Visitors < 2 || treatment.Visitors < 2:
		return nil, ReasonTooFewVisitors
	case control.Variance == 0 && treatment.Variance == 0:
		return nil, ReasonZeroVariance
	}
	m := newMeans(control, treatment)
	w := welch{means: m, student: newStudent(m.degreesOfFreedom()), nonNegative: nonNegative}
	if se := m.standardError(); se == 0 || !finite(se) || !finite(m.difference()/se) || !finite(w.student.nu) {
		return nil, ReasonInvalidData
	}
	return w, ""
}

func (w welch) z() float64 { return w.difference() / w.standardError() }

func (w welch) test() (name Test, statistic, nu, p float64) {
	t := w.z()
	tail, _ := w.student.survival(math.Abs(t))
	return TestWelch, t, w.student.nu, 2 * tail
}

// always widens unbalanced pairs. At a 5/95 split of skewed values Welch's
// confidence sequence has an error rate of .09. The widened sequence has an
// error rate below alpha.
func (w welch) always() contrast {
	w.means = w.widened()
	return w
}

func (w welch) quantile(tail float64) float64 { return w.student.quantile(tail) }

func (w welch) lift() float64 {
	if w.mc == 0 {
		return math.NaN()
	}
	return w.difference() / math.Abs(w.mc)
}

func (w welch) differences(q float64, significant bool) bounds {
	return w.differenceInterval(q, significant)
}

func (w welch) lifts(q float64, significant bool) (bounds, Reason) {
	if w.mc == 0 {
		return bounds{lower: math.NaN(), upper: math.NaN()}, ReasonBaselineZero
	}
	return w.liftInterval(q, significant, w.nonNegative)
}

func (w welch) shared() float64 { return math.Sqrt(w.sc / (w.sc + w.st)) }

func (w welch) visitors() float64 { return w.fc + w.ft + 2 }
