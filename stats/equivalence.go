package stats

import "math"

// Equivalence returns the index of the first look at which no treatment with a share
// can differ from control by the margin, a lift as a fraction: the interval of the
// sequence (see Sequential) is within ±margin. It returns -1 if there is none. The
// intervals of all looks cover all lifts together with probability 1 - alpha at least.
func Equivalence(looks []Look, plannedLook int, margin float64, o Options) int {
	for i, look := range looks {
		o.NonNegative, o.PlannedLook = look.NonNegative, i == plannedLook
		if look.equivalent(margin, o) {
			return i
		}
	}
	return -1
}

func (l *Look) equivalent(margin float64, o Options) bool {
	if len(l.Samples) < 2 {
		return false
	}
	pairs := make([]pair, len(l.Samples)-1)
	for i, treatment := range l.Samples[1:] {
		pairs[i] = newPair(l.Samples[0], treatment, o.pairRules(i))
		if o.hasShare(i) && !pairs[i].near(margin) {
			return false
		}
	}
	s := newSequence(pairs, o)
	for i, c := range pairs {
		if !o.hasShare(i) {
			continue
		}
		lift := s.result(i, c).Lift
		if lift == nil || lift.Lower == nil || lift.Upper == nil || *lift.Lower <= -margin || *lift.Upper >= margin {
			return false
		}
	}
	return true
}

// near reports whether the interval of the lift may be within ±margin. It costs much
// less than the interval, which is wider than one standard error on each side.
func (c pair) near(margin float64) bool {
	if c.contrast == nil {
		return false
	}
	lift := math.Abs(c.contrast.lift())
	if !(lift < margin) {
		return false
	}
	se := lift / math.Abs(c.contrast.z())
	return !finite(se) || se < margin
}
