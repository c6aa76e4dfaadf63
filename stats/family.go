package stats

// family is all comparisons with one control that have a p-value.
type family struct {
	size       int
	correction Correction
	// tail is half the effective alpha: the one at which a single comparison is
	// judged so that all of them together err with alpha.
	tail float64
}

func newFamily(pairs []pair, alpha float64) family {
	f := family{correction: CorrectionNone, tail: alpha / 2}
	for _, c := range pairs {
		if c.contrast != nil {
			f.size++
		}
	}
	return f
}

// adjusted returns the p-value of a comparison within the family.
func (f family) adjusted(c pair) float64 { return c.p }
