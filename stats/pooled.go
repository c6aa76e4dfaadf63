package stats

import "math"

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

const (
	// leastErrors is the number of its standard errors from which the mean of the pair is known well enough to divide
	// by it. For a small rate, that is 25 converted visitors.
	leastErrors = 5
	// largestPooledEffect is far above the effects of values that are not negative, which are at most the visitors of
	// the pair per visitor of the treatment. Squares of smaller effects keep their digits.
	largestPooledEffect = 1e6
)

// NewPooledEffect returns the effect in the periods of equal shares s that have MinimumVisitors of both variations, as
// in looks:
//
//	m_s = (n_c m_c + n_t m_t) / (n_c + n_t)
//	v_s = m_s (1 - m_s) for rates, else ((n_c-1) v_c + (n_t-1) v_t) / (n_c + n_t - 2)
//	y_s = (m_t - m_c) / m_s,  se_s² = v_s (1/n_c + 1/n_t) / m_s²
//	y = Σ w_s y_s,  se² = 1 / Σ 1/se_s²,  shared² = Σ w_s² v_s / (n_c m_s²),  w_s = se² / se_s²
//
// For rates, y/se is Rao's score of no effect (Miettinen and Nurminen 1985). The reason is TOO_FEW_VISITORS if no
// period has enough visitors, or if the mean of the pair is below 5 of its standard errors. Neither looks at the
// difference. It is INVALID_DATA if the numbers exceed the range of floating point.
func NewPooledEffect(strata []Stratum) PooledEffect {
	var e PooledEffect
	var information, sum, shared, visitors, treated, total, variance float64
	for _, s := range strata {
		if s.Control == nil || s.Treatment == nil ||
			min(s.Control.visitorCount(), s.Treatment.visitorCount()) < MinimumVisitors {
			continue
		}
		n, nt := float64(s.Control.visitorCount()), float64(s.Treatment.visitorCount())
		m := (n*s.Control.observedValue() + nt*s.Treatment.observedValue()) / (n + nt)
		v := ((n-1)*s.Control.variance() + (nt-1)*s.Treatment.variance()) / (n + nt - 2)
		if _, isRate := s.Control.(Rate); isRate {
			v = m * (1 - m)
		}
		if !(m > 0 && v > 0) {
			continue
		}
		precision := m * m / (v * (1/n + 1/nt))
		information += precision
		sum += precision * (s.Treatment.observedValue() - s.Control.observedValue()) / m
		shared += precision * precision * v / (n * m * m)
		visitors, treated, total, variance = visitors+n+nt, treated+nt, total+(n+nt)*m, variance+(n+nt)*v
	}
	if !(information > 0) || !(total/visitors >= leastErrors*math.Sqrt(variance/visitors/visitors)) {
		return PooledEffect{Reason: ReasonTooFewVisitors}
	}
	e.Value, e.StandardError, e.Shared = sum/information, 1/math.Sqrt(information), math.Sqrt(shared)/information
	e.Mean, e.TreatmentShare = total/visitors, treated/visitors
	if !(math.Abs(e.Value) < largestPooledEffect && e.StandardError > 0 && e.Mean < math.MaxFloat64) {
		return PooledEffect{Reason: ReasonInvalidData}
	}
	return e
}

// Lift returns the lift over control of an effect relative to the mean of the pair. It returns false if the mean of
// control would not be above 0.
func (e *PooledEffect) Lift(effect float64) (lift float64, exists bool) {
	control := 1 - e.TreatmentShare*effect
	return effect / control, control > 0
}
