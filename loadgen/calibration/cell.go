package calibration

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"lifthouse/schema/catalogue"
)

// Sense is what a nominal rate means for the one that is observed.
type Sense string

// The senses. Bands of the first two are two-sided.
const (
	Exact       Sense = "exact"
	Approximate Sense = "approximate" // an asymptotic method: a fifth more or less of the error is allowed
	AtMost      Sense = "at most"
	AtLeast     Sense = "at least"
	Shown       Sense = "shown" // and not judged
)

// tolerated is the share of the nominal error by which an approximate method
// may miss it.
const tolerated = 0.2

// Cell is one rate, as it should be and as it was.
type Cell struct {
	Measure     string  `json:"measure"`
	Methodology string  `json:"methodology"`
	Level       int     `json:"level"`
	Metric      string  `json:"metric"`
	Shape       string  `json:"shape"`
	Nominal     float64 `json:"nominal"`
	Sense       Sense   `json:"sense"`
	Count       int     `json:"count"`
	Experiments int     `json:"experiments"`
	Observed    float64 `json:"observed"`
	Lower       float64 `json:"lower"` // of the band; of a cell that is judged
	Upper       float64 `json:"upper"`
	Outside     bool    `json:"outside"`

	least, most float64 // rates that are right
}

// The measures.
const (
	falsePositives     = "false positives"
	falseVerdicts      = "false verdicts"            // better or worse, though there is no effect
	peeking            = "false positives, any look" // of the fixed-horizon answer
	peekingVerdicts    = "false verdicts, any look"
	alwaysValid        = "sequential false positives" // at any look
	alwaysValidVerdict = "sequential false verdicts"  // at any look, of verdicts that are significant for the sequential answer too
	power              = "power"
	powerVerdicts      = "power, verdicts"
	wrongSigns         = "wrong signs"
	differences        = "coverage of difference"
	improvements       = "coverage of improvement"
	sequenceDifference = "sequential coverage of difference"  // at every look
	sequenceImprove    = "sequential coverage of improvement" // at every look
)

// cellsOf makes cells of all tallies: by measure, so that like stands with like.
func cellsOf(tallies map[cellKey]*tally, o *Options) []Cell {
	groups := map[string][]Cell{}
	var order []string
	for _, r := range o.rules {
		for _, metric := range metrics {
			for i := range shapes {
				t := tallies[cellKey{r, metric, shapes[i].name}]
				if t == nil {
					continue
				}
				for _, c := range cellsOfOne(t, r, metric, &shapes[i], o) {
					if c.Experiments == 0 {
						continue
					}
					if groups[c.Measure] == nil {
						order = append(order, c.Measure)
					}
					c.Methodology, c.Level, c.Metric, c.Shape = r.methodology, r.level, metric, shapes[i].name
					c.Observed = float64(c.Count) / float64(c.Experiments)
					groups[c.Measure] = append(groups[c.Measure], c)
				}
			}
		}
	}
	var cells []Cell
	for _, measure := range order {
		cells = append(cells, groups[measure]...)
	}
	return cells
}

// cellsOfOne says what each count of a tally should be.
//
// A fixed-horizon error is meant to be alpha. It is exactly so for rates in
// even groups, and about so where the method is asymptotic and the report
// trusts it; where the report guards its own number (a mean of few buyers, or
// against a small control), the verdict is judged and the number is shown.
// Bayesian reports know no family: of several variations they are shown.
func cellsOfOne(t *tally, r rule, metric string, s *shape, o *Options) []Cell {
	alpha, null, effect, all := r.alpha(), &t.null, &t.effect, &t.all
	if r.level == 100 {
		return []Cell{
			{Measure: falsePositives, Sense: Exact, Count: null.significant, Experiments: null.experiments},
			{Measure: falseVerdicts, Sense: Exact, Count: null.decided, Experiments: null.experiments},
		}
	}
	bayesian, family := r.methodology == catalogue.Bayesian, len(s.shares) > 2
	trusted := metric == goalConversionRate || s.balanced && s.frequent
	errs := Approximate
	switch {
	case bayesian && family, !trusted:
		errs = Shown
	case !bayesian && metric == goalConversionRate && s.balanced && s.frequent:
		errs = Exact
	}
	verdicts := Cell{Measure: falseVerdicts, Nominal: alpha, Sense: AtMost, Count: null.decided, Experiments: null.experiments}
	switch {
	case bayesian && family:
		verdicts.Sense = Shown
	case errs != Exact:
		verdicts.most = alpha * (1 + tolerated)
	}
	cells := []Cell{
		{Measure: falsePositives, Nominal: alpha, Sense: errs, Count: null.significant, Experiments: null.experiments},
		verdicts,
		{Measure: peeking, Nominal: alpha, Sense: Shown, Count: null.anyLook, Experiments: null.looked},
		{Measure: peekingVerdicts, Nominal: alpha, Sense: Shown, Count: null.anyDecided, Experiments: null.looked},
		{Measure: differences, Nominal: 1 - alpha, Sense: errs, Count: all.difference, Experiments: all.experiments},
		{Measure: improvements, Nominal: 1 - alpha, Sense: errs, Count: all.improvement, Experiments: all.experiments},
		powerCell(r, metric, s, effect.significant, effect.experiments, o),
		{Measure: powerVerdicts, Sense: Shown, Count: effect.decided, Experiments: effect.experiments},
		{Measure: wrongSigns, Nominal: alpha / 2, Sense: AtMost, Count: effect.wrongSign, Experiments: effect.experiments},
	}
	if bayesian {
		return cells
	}
	valid, sequence := AtMost, AtLeast
	if !trusted {
		valid, sequence = Shown, Shown
	}
	return append(
		cells,
		Cell{Measure: alwaysValid, Nominal: alpha, Sense: valid, Count: null.sequential, Experiments: null.looked},
		Cell{Measure: alwaysValidVerdict, Nominal: alpha, Sense: AtMost, Count: null.sequentialRule, Experiments: null.looked},
		Cell{Measure: sequenceDifference, Nominal: 1 - alpha, Sense: sequence, Count: all.sequentialDifference, Experiments: all.looked},
		Cell{Measure: sequenceImprove, Nominal: 1 - alpha, Sense: sequence, Count: all.sequentialImprovement, Experiments: all.looked},
	)
}

// powerLoose is by how much power may differ from the normal approximation.
const powerLoose = 0.1

// powerCell holds power against the normal approximation, loosely, for rates
// of two even groups; the rest is shown beside it.
func powerCell(r rule, metric string, s *shape, count, experiments int, o *Options) Cell {
	e := experiment{effect: true, shape: s}
	n := float64(o.Visitors) * s.scale / 100
	variance := func(p float64) float64 {
		if metric == valuePerVisitor { // E x² - (E x)², x = 0 for those who do not buy
			return meanValue * meanValue * (p*math.Exp(spread*spread) - p*p)
		}
		return p * (1 - p)
	}
	d, _ := e.truth(metric, 1)
	pc, pt := e.rateOf(0), e.rateOf(1)
	se := math.Sqrt(variance(pc)/(n*float64(s.shares[0])) + variance(pt)/(n*float64(s.shares[1])))
	z := distuv.UnitNormal.Quantile(1 - r.alpha()/2)
	theory := distuv.UnitNormal.CDF(d/se-z) + distuv.UnitNormal.CDF(-d/se-z)
	c := Cell{Measure: power, Nominal: theory, Sense: Shown, Count: count, Experiments: experiments}
	if metric == goalConversionRate && s.balanced && s.frequent && len(s.shares) == 2 && r.methodology == catalogue.Frequentist {
		c.Sense, c.least, c.most = Approximate, max(0, theory-powerLoose), min(1, theory+powerLoose)
	}
	return c
}

// right are the rates that are so in the cell's sense.
func (c *Cell) right() (least, most float64) {
	least, most = c.Nominal, c.Nominal
	slack := tolerated * min(c.Nominal, 1-c.Nominal)
	switch {
	case c.most > 0:
		return c.least, c.most
	case c.Sense == Approximate:
		return least - slack, most + slack
	case c.Sense == AtMost:
		return 0, most
	case c.Sense == AtLeast:
		return least, 1
	}
	return least, most
}

// confidence is that of the bands over the whole table.
const confidence = 0.999

// judge gives each judged cell its band, such that all of them together hold
// with the confidence if everything is right, and says which lie outside.
func judge(r *Result) {
	r.Judged, r.Outside = 0, 0
	for i := range r.Cells {
		if r.Cells[i].Sense != Shown {
			r.Judged++
		}
	}
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Sense == Shown {
			continue
		}
		tail := (1 - confidence) / float64(r.Judged)
		if c.Sense == Exact || c.Sense == Approximate {
			tail /= 2
		}
		least, most := c.right()
		n := float64(c.Experiments)
		c.Lower, c.Upper = float64(lowest(c.Experiments, least, tail))/n, float64(highest(c.Experiments, most, tail))/n
		if c.Sense == AtMost {
			c.Lower = 0
		}
		if c.Sense == AtLeast {
			c.Upper = 1
		}
		c.Outside = c.Observed < c.Lower || c.Observed > c.Upper
		tick(&r.Outside, c.Outside)
	}
}

// highest is the least k that a binomial count exceeds with a probability of
// at most tail.
func highest(n int, p, tail float64) int {
	if p <= 0 {
		return 0
	}
	if p >= 1 {
		return n
	}
	b := distuv.Binomial{N: float64(n), P: p}
	low, high := -1, n // exceeding low is likelier than tail, exceeding high is not
	for high-low > 1 {
		if middle := (low + high) / 2; b.Survival(float64(middle)) > tail {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// lowest is the greatest k that a binomial count falls short of with a
// probability of at most tail.
func lowest(n int, p, tail float64) int { return n - highest(n, 1-p, tail) }
