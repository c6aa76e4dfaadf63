package stats

import "math"

// Estimate is the metric of one variation: its value, its standard error and its interval at the plain alpha. None of
// them is adjusted for a family. Reason is set if any of them is nil.
type Estimate struct {
	Value         *float64  `json:"value"`
	Uncapped      *float64  `json:"uncapped,omitempty"` // the value of uncapped data, if those of Value are capped
	StandardError *float64  `json:"standardError"`
	Interval      *Interval `json:"interval"`
	Reason        Reason    `json:"reason,omitempty"`
}

// EstimateRate returns the share of visitors who converted, p = x/n, with standard error sqrt(p (1-p) / n) and Wilson's
// score interval
//
//	(p + z²/2n ± z sqrt(p (1-p)/n + z²/4n²)) / (1 + z²/n)
//
// where z is the normal quantile of alpha/2. All values are in [0, 1]. The interval is also valid if no visitor or
// every visitor converted.
//
// See Wilson (1927).
func EstimateRate(r Rate, o Options) Estimate {
	if reason := r.checkData(); reason != "" {
		return Estimate{Reason: reason}
	}
	n := float64(r.Visitors)
	p, variance := r.observedValue(), r.variance()
	e := Estimate{Value: &p, StandardError: numberOrNil(math.Sqrt(variance / n))}
	alpha := o.Alpha()
	if alpha == 0 {
		e.Reason = ReasonLevel100
		return e
	}
	z := normalQuantile(alpha / 2)
	half := z * math.Sqrt(variance/n+z*z/(4*n*n))
	center, below := p+z*z/(2*n), 1+z*z/n
	in := bounds{lower: math.Max((center-half)/below, 0), upper: math.Min((center+half)/below, 1)}
	if r.Converted == 0 {
		in.lower = 0
	}
	if r.Converted == r.Visitors {
		in.upper = 1
	}
	e.Interval = in.toInterval()
	return e
}

// EstimateMean returns the mean per visitor m, with standard error sqrt(v/n) and the interval m ± t sqrt(v/n). All are
// in the value's unit. Here t is the Student quantile of alpha/2 with n - 1 degrees of freedom. With fewer than two
// visitors there is only the value. If all values are equal, there is no interval.
func EstimateMean(m Mean, o Options) Estimate {
	if reason := m.checkData(); reason != "" {
		return Estimate{Reason: reason}
	}
	return newEstimate(m.Mean, math.Sqrt(m.varianceOfMean()), m.Visitors, o)
}

// EstimateRatio returns R = S/G, average value. Its standard error is by the delta method, because visitors are
// independent and goals are not:
//
//	SE² = (ss - 2 R sn + R² nn) n / ((n-1) G²)
//
// where ss, sn and nn are the sums over visitors of value², value times goals and goals². The interval is R ± t SE,
// where t is the Student quantile of alpha/2 with n - 1 degrees of freedom. Without goals the reason is BASELINE_ZERO.
//
// See Deng, Knoblich and Lu (2018), "Applying the Delta Method in Metric Analytics".
func EstimateRatio(r Ratio, o Options) Estimate {
	switch {
	case r.Visitors == 0:
		return Estimate{Reason: ReasonNoVisitors}
	case r.Visitors < 0 || r.Scale < 1:
		return Estimate{Reason: ReasonInvalidData}
	case integerOrZero(r.Goals.Sum).Sign() == 0:
		return Estimate{Reason: ReasonBaselineZero}
	}
	value, standardError := r.valueAndError()
	if !isFinite(value) || (r.Visitors > 1 && !isFinite(standardError)) {
		return Estimate{Reason: ReasonInvalidData}
	}
	return newEstimate(value, standardError, r.Visitors, o)
}

func newEstimate(value, standardError float64, visitors int64, o Options) Estimate {
	e := Estimate{Value: numberOrNil(value)}
	if visitors < 2 {
		e.Reason = ReasonTooFewVisitors
		return e
	}
	e.StandardError = &standardError
	alpha := o.Alpha()
	switch {
	case alpha == 0:
		e.Reason = ReasonLevel100
	case standardError == 0:
		e.Reason = ReasonZeroVariance
	default:
		half := newStudent(float64(visitors)-1).quantile(alpha/2) * standardError
		e.Interval, e.Reason = shownInterval(bounds{lower: value - half, upper: value + half}, "")
	}
	return e
}

// toInterval returns the interval of a result, or nil if the bounds cannot be computed.
func (in bounds) toInterval() *Interval {
	if math.IsNaN(in.lower) || math.IsNaN(in.upper) || math.IsInf(in.lower, 1) || math.IsInf(in.upper, -1) {
		return nil
	}
	return &Interval{numberOrNil(in.lower), numberOrNil(in.upper)}
}

// numberOrNil returns a pointer to x, or nil if x is not finite. A negative zero becomes zero.
func numberOrNil(x float64) *float64 {
	if !isFinite(x) {
		return nil
	}
	x += 0
	return &x
}
