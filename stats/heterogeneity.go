package stats

import (
	"cmp"
	"math"
)

// Heterogeneity is the evidence that the lift of a treatment differs between segments.
type Heterogeneity struct {
	Segments    int      `json:"segments"`         // with enough data in any treatment
	BayesFactor *float64 `json:"bayesFactor"`      // how many times likelier the data are if the lifts differ
	PValue      *float64 `json:"pValue,omitempty"` // min(1, 1/BayesFactor)
	Reason      Reason   `json:"reason,omitempty"` // why there is no evidence; BayesFactor and PValue are nil then
}

// MeasureHeterogeneity tests whether the lift differs between segments of the visitors. effects has the effects of each
// treatment in each segment; those with a Reason do not count. spread > 0 is the standard deviation of the lifts over
// segments if they differ. For the segments i of a treatment,
//
//	y_i ~ N(μ, v_i) if the lifts are equal, else N(μ, v_i + spread²),  v_i = se_i²
//	B = sqrt(Σ 1/v_i / Σ 1/w_i) Π sqrt(v_i / w_i) exp((Q(v) - Q(w)) / 2),  w_i = v_i + spread²
//	Q(u) = Σ (y_i - m)² / u_i,  m = Σ y_i/u_i / Σ 1/u_i
//
// where the prior of the common μ is flat, so B does not depend on the lift that all segments share. Q(v) is Cochran's
// Q. B is 1 with fewer than two segments. BayesFactor is the mean of B over the treatments, and is between 0 and e^700.
//
// The test is valid however often it is read: the probability that the p-value is ever at most a, without a difference,
// is at most a, also if segments enter later, because whether they do depends on their visitors and not on the effects.
// The reason is TOO_FEW_SEGMENTS if no treatment has two segments.
//
// See Hendriksen, de Heide and Grünwald (2021), "Optional Stopping with Bayes Factors": the right Haar prior; Cochran
// (1954) for Q; Vovk and Wang (2021), "E-values", for the mean of dependent factors.
func MeasureHeterogeneity(effects [][]PooledEffect, spread float64) Heterogeneity {
	found := Heterogeneity{Reason: ReasonTooFewSegments}
	sum := 0.0
	for _, segments := range effects {
		var values, errors, widened []float64
		for _, e := range segments {
			if e.Reason == "" {
				v := e.StandardError * e.StandardError
				values, errors, widened = append(values, e.Value), append(errors, v), append(widened, v+spread*spread)
			}
		}
		found.Segments = max(found.Segments, len(values))
		if len(values) < 2 {
			sum++
			continue
		}
		found.Reason = ""
		equal, differ := logDensityOfEqual(values, errors), logDensityOfEqual(values, widened)
		sum += math.Exp(math.Min(differ-equal, 700))
	}
	if found.Reason == "" {
		factor := sum / float64(len(effects))
		found.BayesFactor = &factor
		found.PValue = new(math.Min(1, 1/factor))
	}
	return found
}

// logDensityOfEqual returns the logarithm of the density of independent normal values with given variances and a common
// mean that has a flat prior, without the constants.
func logDensityOfEqual(values, variances []float64) float64 {
	weight, mean, logs := 0.0, 0.0, 0.0
	for i, v := range variances {
		weight += 1 / v
		mean += (values[i] - mean) / v / weight
		logs += math.Log(v)
	}
	q := 0.0
	for i, v := range variances {
		q += (values[i] - mean) * (values[i] - mean) / v
	}
	return -(logs + math.Log(weight) + q) / 2
}

// DifferenceOfLifts returns how far a lift is above an independent one, as a fraction: b.Value is subtracted from
// a.Value. The interval has the level of both intervals [l, u] (MOVER):
//
//	d = a - b,  [d - sqrt((a - l_a)² + (u_b - b)²), d + sqrt((u_a - a)² + (b - l_b)²)]
//
// An end is nil if an end that it needs is. The reason is that of the lift that lacks something. For credible
// intervals, the result approximates the one of the difference of both posteriors.
//
// See Zou and Donner (2008), "Construction of Confidence Limits about Effect Measures".
func DifferenceOfLifts(a, b Effect) Effect {
	reason := cmp.Or(a.Reason, b.Reason)
	if a.Value == nil || b.Value == nil {
		return Effect{Reason: reason}
	}
	d := *a.Value - *b.Value
	out := Effect{Value: numberOrNil(d), Reason: reason}
	if a.Interval == nil || b.Interval == nil {
		return out
	}
	end := func(sign float64, ofA, ofB *float64) *float64 {
		if ofA == nil || ofB == nil {
			return nil
		}
		return numberOrNil(d + sign*math.Hypot(*ofA-*a.Value, *ofB-*b.Value))
	}
	out.Interval = &Interval{end(-1, a.Interval[0], b.Interval[1]), end(1, a.Interval[1], b.Interval[0])}
	return out
}

// PooledEffect is the effect of a treatment relative to the mean of all visitors of the pair, as a fraction. Its
// standard error is the one without an effect. So it is defined without conversions in a variation, and its likelihood
// is close to normal where effects are small. The lift is Value / (1 - TreatmentShare · Value).
type PooledEffect struct {
	Value         float64
	StandardError float64
	// Shared is the standard deviation of the part of the error that all treatments of a control share: the error of
	// control.
	Shared         float64
	Mean           float64 // of the pair, in the unit of the metric
	TreatmentShare float64 // of the visitors of the pair
	Reason         Reason  // why there is no effect; the other fields are 0
}

// NewPooledEffect returns the effect in the periods of equal shares s that have MinimumVisitors of both variations, as
// in looks:
//
//	m_s = (n_c m_c + n_t m_t) / (n_c + n_t)
//	v_s = m_s (1 - m_s) for rates, else ((n_c-1) v_c + (n_t-1) v_t) / (n_c + n_t - 2)
//	y_s = (m_t - m_c) / m_s,  se_s² = v_s (1/n_c + 1/n_t) / m_s²
//	y = Σ w_s y_s,  se² = 1 / Σ 1/se_s²,  shared² = Σ w_s² v_s / (n_c m_s²),  w_s = se² / se_s²
//
// For rates, y/se is Rao's score of no effect (Miettinen and Nurminen 1985). The reason is TOO_FEW_VISITORS if no
// period has enough visitors; MEAN_NOT_POSITIVE or ZERO_VARIANCE if the mean or the variance of the pair is not above 0
// in any of those; and MEAN_TOO_UNCERTAIN if the mean is below 5 of its standard errors. None looks at the difference.
// It is INVALID_DATA if the numbers exceed the range of floating point.
func NewPooledEffect(strata []Stratum) PooledEffect {
	var e PooledEffect
	var information, sum, shared, visitors, treated, total, variance float64
	missing := ReasonTooFewVisitors
	for _, s := range strata {
		if s.Control == nil || s.Treatment == nil ||
			min(s.Control.visitorCount(), s.Treatment.visitorCount()) < MinimumVisitors {
			continue
		}
		n, nt := float64(s.Control.visitorCount()), float64(s.Treatment.visitorCount())
		m := (n*s.Control.observedValue() + nt*s.Treatment.observedValue()) / (n + nt)
		v := ((n-1)*s.Control.variance() + (nt-1)*s.Treatment.variance()) / (n + nt - 2)
		_, isRate := s.Control.(Rate)
		if isRate {
			v = m * (1 - m)
		}
		missing = reasonOfMean(m, v, isRate)
		if missing != "" {
			continue
		}
		precision := m * m / (v * (1/n + 1/nt))
		information += precision
		sum += precision * (s.Treatment.observedValue() - s.Control.observedValue()) / m
		shared += precision * precision * v / (n * m * m)
		visitors, treated, total, variance = visitors+n+nt, treated+nt, total+(n+nt)*m, variance+(n+nt)*v
	}
	const leastErrors = 5 // from which the mean is known well enough to divide by it: for a small rate, 25 conversions
	switch {
	case !(information > 0):
		return PooledEffect{Reason: cmp.Or(missing, ReasonInvalidData)}
	case !(total/visitors >= leastErrors*math.Sqrt(variance/visitors/visitors)):
		return PooledEffect{Reason: ReasonMeanUncertain}
	}
	e.Value, e.StandardError, e.Shared = sum/information, 1/math.Sqrt(information), math.Sqrt(shared)/information
	e.Mean, e.TreatmentShare = total/visitors, treated/visitors
	// Values that are not negative have far smaller effects: at most the visitors of the pair per visitor of the
	// treatment. Squares of these keep their digits.
	if !(math.Abs(e.Value) < 1e6 && e.StandardError > 0 && e.Mean < math.MaxFloat64) {
		return PooledEffect{Reason: ReasonInvalidData}
	}
	return e
}

// reasonOfMean returns why there is no effect relative to a mean with a variance of visitors; empty: there is one.
func reasonOfMean(mean, variance float64, isRate bool) Reason {
	switch {
	case mean == 0 && isRate: // without conversions
		return ReasonMeanUncertain
	case !(mean > 0):
		return ReasonMeanNotPositive
	case !(variance > 0):
		return ReasonZeroVariance
	}
	return ""
}

// Lift returns the lift over control of an effect relative to the mean of the pair. It returns false if the mean of
// control would not be above 0.
func (e *PooledEffect) Lift(effect float64) (lift float64, exists bool) {
	control := 1 - e.TreatmentShare*effect
	return effect / control, control > 0
}
