package stats

import (
	"math"
	"math/big"
)

// Sample holds the sufficient statistics of a metric for one variation. It is a Rate if each visitor converts or does
// not, or a Mean if each visitor has a value.
type Sample interface {
	visitorCount() int64
	// observedValue returns the observed rate or mean.
	observedValue() float64
	// variance returns the variance of one visitor's value.
	variance() float64
	// checkData returns the reason why nothing can be computed, or "".
	checkData() Reason
}

// largestCount is the maximum number of visitors of a rate. It exceeds the world's population a hundredfold, and is the
// largest count for which floats distinguish rates near 1.
const largestCount = 1_000_000_000_000

// Rate is a number of visitors, at most 10¹², and how many of them converted.
type Rate struct {
	Visitors, Converted int64
}

// Mean is the mean of a value over visitors and the variance of one visitor's value (with n - 1). Nonzero is the number
// of visitors whose value is not zero, or -1 if it is unknown.
type Mean struct {
	Visitors       int64
	Mean, Variance float64
	Nonzero        int64
	Unknown        bool `json:",omitzero"` // a value is not known, so neither is the mean
}

// Sums are exact sums over visitors of a value and of its square. They are in integer units of 1/scale and 1/scale²
// (scale 10000 for money, 1 for counts). A nil sum is 0.
type Sums struct {
	Sum, Squares *big.Int
}

// Merge returns the sums over the union of two disjoint sets of visitors. The sums are exact, so neither order nor
// grouping changes the result.
func (s Sums) Merge(other Sums) Sums {
	return Sums{
		Sum:     new(big.Int).Add(integerOrZero(s.Sum), integerOrZero(other.Sum)),
		Squares: new(big.Int).Add(integerOrZero(s.Squares), integerOrZero(other.Squares)),
	}
}

// Mean returns the mean and the variance over n visitors,
//
//	m = s / n
//	v = (n ss - s²) / (n (n - 1))
//
// where s is the sum divided by scale, and ss the sum of squares divided by scale². The numerators are computed in
// integers, so values of 10⁹ ± 2 keep all their digits. The mean is in the value's unit, the variance in its square.
// The variance of fewer than two visitors is 0, and the mean of no visitors is 0. Nonzero is set to -1.
//
// Floating-point sums lose these digits; see Chan, Golub and LeVeque (1983).
func (s Sums) Mean(visitors, scale int64) Mean {
	m := Mean{Visitors: visitors, Nonzero: -1}
	if visitors < 1 || scale < 1 {
		return m
	}
	sum, squares := integerOrZero(s.Sum), integerOrZero(s.Squares)
	n := big.NewInt(visitors)
	unit := big.NewInt(scale)
	m.Mean = roundedQuotient(sum, new(big.Int).Mul(n, unit))
	if visitors == 1 {
		return m
	}
	spread := new(big.Int).Mul(n, squares)
	spread.Sub(spread, new(big.Int).Mul(sum, sum))
	pairs := new(big.Int).Mul(n, big.NewInt(visitors-1))
	pairs.Mul(pairs, unit).Mul(pairs, unit)
	m.Variance = roundedQuotient(spread, pairs)
	return m
}

// Ratio holds exact sums over visitors of a value and of a number of goals. The metric is S/G: average value. Visitors
// are independent, goals are not. Value is in units of 1/Scale, Goals in units of 1. Products is the sum of value times
// goals. A nil sum is 0.
type Ratio struct {
	Visitors     int64
	Value, Goals Sums
	Products     *big.Int
	Scale        int64
	Unknown      bool // a value is not known, so neither is the ratio
}

// Mean returns the ratio as a mean for comparisons: its value is R = S/G, and its variance is n SE² with the standard
// error of the delta method. So a comparison uses Welch's test for the difference of two ratios, and Fieller's interval
// for their quotient. nonzero is the number of visitors whose value is not zero. Without goals, the mean is not a
// number, and a comparison is impossible.
//
// See EstimateRatio.
func (r Ratio) Mean(nonzero int64) Mean {
	m := Mean{Visitors: r.Visitors, Nonzero: nonzero, Mean: math.NaN(), Unknown: r.Unknown}
	value, standardError, reason := r.valueAndError()
	if reason != "" {
		return m
	}
	m.Mean = value
	if r.Visitors > 1 {
		m.Variance = standardError * standardError * float64(r.Visitors)
	}
	return m
}

// valueAndError returns R = S/G and its standard error (see EstimateRatio), or the reason why there is no R.
func (r Ratio) valueAndError() (value, standardError float64, reason Reason) {
	total, goals := integerOrZero(r.Value.Sum), integerOrZero(r.Goals.Sum)
	switch {
	case r.Visitors == 0:
		return 0, 0, ReasonNoVisitors
	case r.Unknown:
		return 0, 0, ReasonRateUnknown
	case r.Visitors < 0 || r.Scale < 1:
		return 0, 0, ReasonInvalidData
	case goals.Sign() == 0:
		return 0, 0, ReasonBaselineZero
	}
	value = roundedQuotient(total, new(big.Int).Mul(goals, big.NewInt(r.Scale)))
	if r.Visitors < 2 {
		return value, math.NaN(), ""
	}
	// n (ss G² - 2 S G sn + S² nn) / ((n-1) G⁴)
	square := func(x *big.Int) *big.Int { return new(big.Int).Mul(x, x) }
	spread := new(big.Int).Mul(integerOrZero(r.Value.Squares), square(goals))
	cross := new(big.Int).Mul(total, goals)
	cross.Mul(cross, integerOrZero(r.Products)).Lsh(cross, 1)
	spread.Sub(spread, cross)
	spread.Add(spread, new(big.Int).Mul(square(total), integerOrZero(r.Goals.Squares)))
	spread.Mul(spread, big.NewInt(r.Visitors))
	below := square(square(goals))
	below.Mul(below, big.NewInt(r.Visitors-1)).Mul(below, square(big.NewInt(r.Scale)))
	return value, math.Sqrt(roundedQuotient(spread, below)), ""
}

func integerOrZero(x *big.Int) *big.Int {
	if x == nil {
		return new(big.Int)
	}
	return x
}

// roundedQuotient returns a/b rounded once to a float. It returns ±Inf beyond the range of floats.
func roundedQuotient(a, b *big.Int) float64 {
	if a.IsInt64() && b.IsInt64() {
		const exact = 1 << 53
		x := a.Int64()
		y := b.Int64()
		isExact := func(n int64) bool { return -exact < n && n < exact }
		if isExact(x) && isExact(y) && y > 0 {
			return float64(x) / float64(y)
		}
	}
	x := new(big.Float).SetPrec(128).SetInt(a)
	y := new(big.Float).SetPrec(128).SetInt(b)
	if y.Sign() == 0 {
		return math.NaN()
	}
	q, _ := x.Quo(x, y).Float64()
	return q
}

func (r Rate) visitorCount() int64 { return r.Visitors }

func (r Rate) observedValue() float64 { return float64(r.Converted) / float64(r.Visitors) }

func (r Rate) variance() float64 {
	return r.observedValue() * float64(r.Visitors-r.Converted) / float64(r.Visitors)
}

func (r Rate) checkData() Reason {
	isCount := r.Visitors >= 0 && r.Visitors <= largestCount
	isPart := r.Converted >= 0 && r.Converted <= r.Visitors
	switch {
	case !isCount || !isPart:
		return ReasonInvalidData
	case r.Visitors == 0:
		return ReasonNoVisitors
	}
	return ""
}

func (m Mean) visitorCount() int64 { return m.Visitors }

func (m Mean) observedValue() float64 { return m.Mean }

func (m Mean) variance() float64 { return m.Variance }

func (m Mean) checkData() Reason {
	isVariance := isFinite(m.Variance) && !(m.Variance < 0)
	switch {
	case m.Visitors == 0:
		return ReasonNoVisitors
	case m.Unknown:
		return ReasonRateUnknown
	case m.Nonzero == 0 && math.IsNaN(m.Mean): // a ratio without goals
		return ReasonBaselineZero
	case m.Visitors < 0 || !isFinite(m.Mean) || !isVariance:
		return ReasonInvalidData
	}
	return ""
}

// varianceOfMean returns the variance of the mean: the square of its standard error.
func (m Mean) varianceOfMean() float64 { return m.Variance / float64(m.Visitors) }

func checkSample(s Sample) Reason {
	if s == nil {
		return ReasonNoVisitors
	}
	return s.checkData()
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

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
	p := r.observedValue()
	variance := r.variance()
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
	value, standardError, reason := r.valueAndError()
	hasError := r.Visitors <= 1 || isFinite(standardError)
	if reason == "" && !(isFinite(value) && hasError) {
		reason = ReasonInvalidData
	}
	if reason != "" {
		return Estimate{Reason: reason}
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
	hasLower := !math.IsNaN(in.lower) && !math.IsInf(in.lower, 1)
	hasUpper := !math.IsNaN(in.upper) && !math.IsInf(in.upper, -1)
	if !hasLower || !hasUpper {
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
