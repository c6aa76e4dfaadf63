package calibration

import (
	"fmt"
	"math"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"

	"lifthouse/schema/catalogue"
)

// Sense is the relation between the nominal and the true rate of a cell.
type Sense string

// The senses. Exact and Approximate cells have two-sided acceptance bands.
const (
	Exact       Sense = "exact"       // the true rate equals the nominal rate
	Approximate Sense = "approximate" // the method is asymptotic: the true error rate may differ from the nominal one by 20 %
	AtMost      Sense = "at most"
	AtLeast     Sense = "at least"
	Untested    Sense = "not tested" // reported without an acceptance band
)

// tolerance is the fraction of the nominal error rate by which the error rate of an
// asymptotic method may differ from it.
const tolerance = 0.2

// Cell is an observed rate with its nominal rate and acceptance band.
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
	Observed    float64 `json:"observed"` // Count / Experiments
	Lower       float64 `json:"lower"`    // of the acceptance band; 0 if not tested
	Upper       float64 `json:"upper"`    // of the acceptance band; 0 if not tested
	Outside     bool    `json:"outside"`  // Observed is outside the acceptance band

	least, most float64 // acceptable true rates, if most is positive
}

// NominalText formats the nominal rate with its sense.
func (c Cell) NominalText() string {
	switch c.Sense {
	case Exact:
		return fmt.Sprintf("= %.3g", c.Nominal)
	case AtMost:
		return fmt.Sprintf("≤ %.3g", c.Nominal)
	case AtLeast:
		return fmt.Sprintf("≥ %.3g", c.Nominal)
	default:
		if c.Measure == powerVerdicts { // has no nominal value
			return ""
		}
		return fmt.Sprintf("≈ %.3g", c.Nominal)
	}
}

// BandText formats the acceptance band, or returns "" for an untested cell.
func (c Cell) BandText() string {
	if c.Sense == Untested {
		return ""
	}
	return fmt.Sprintf("%.4f–%.4f", c.Lower, c.Upper)
}

// Verdict returns "ok", "OUTSIDE" or "not tested".
func (c Cell) Verdict() string {
	switch {
	case c.Sense == Untested:
		return "not tested"
	case c.Outside:
		return "OUTSIDE"
	}
	return "ok"
}

// The measures. A verdict is "better" or "worse". Measures with "any day" read a report at the
// end of each day. Measures with "any look" or "all looks" use the looks in the report.
const (
	falsePositives      = "false positives"
	falseVerdicts       = "false verdicts"
	peeking             = "false positives, any day"
	peekingVerdicts     = "false verdicts, any day"
	lookErrors          = "false positives, any look"
	power               = "power"
	powerVerdicts       = "power, verdicts"
	wrongSigns          = "wrong signs"
	differenceCoverage  = "coverage of difference"
	improvementCoverage = "coverage of improvement"
	lookDifference      = "coverage of difference, all looks"
	lookImprovement     = "coverage of improvement, all looks"
)

// cellsOf returns the cells of all tallies, grouped by measure.
func cellsOf(tallies map[tallyKey]*tally, o *Options) []Cell {
	groups := map[string][]Cell{}
	var order []string
	for _, r := range o.rules {
		for _, metric := range metrics {
			for i := range shapes {
				t := tallies[tallyKey{r, metric, shapes[i].name}]
				if t == nil {
					continue
				}
				for _, c := range tallyCells(t, r, metric, &shapes[i], o) {
					if c.Experiments == 0 {
						continue
					}
					if groups[c.Measure] == nil {
						order = append(order, c.Measure)
					}
					c.Methodology = r.methodology
					c.Level = r.level
					c.Metric = metric
					c.Shape = shapes[i].name
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

// tallyCells returns the cells of a tally with their nominal rates.
//
// The nominal rate of a fixed-horizon error is alpha. It is exact for conversion
// rates in equal groups. It is approximate if the method is asymptotic and the
// report does not restrict the figure. A report restricts a mean if few visitors
// converted or if control is small. In that case only the verdict is tested.
// Bayesian reports of several variations do not control the family-wise error rate,
// so they are not tested.
func tallyCells(t *tally, r rule, metric string, s *shape, o *Options) []Cell {
	alpha := r.alpha()
	null := &t.null
	effect := &t.effect
	all := &t.all
	if r.level == 100 {
		return []Cell{
			{Measure: falsePositives, Sense: Exact, Count: null.significant, Experiments: null.experiments},
			{Measure: falseVerdicts, Sense: Exact, Count: null.decided, Experiments: null.experiments},
		}
	}
	bayesian := r.methodology == catalogue.Bayesian
	family := len(s.shares) > 2
	unrestricted := metric == goalConversionRate || s.balanced && s.frequent
	isExactRate := metric == goalConversionRate && s.balanced && s.frequent
	sense := Approximate
	switch {
	case bayesian && family, !unrestricted:
		sense = Untested
	case !bayesian && isExactRate:
		sense = Exact
	}
	verdicts := Cell{Measure: falseVerdicts, Nominal: alpha, Sense: AtMost, Count: null.decided, Experiments: null.experiments}
	switch {
	case bayesian && family:
		verdicts.Sense = Untested
	case sense != Exact:
		verdicts.most = alpha * (1 + tolerance)
	}
	cells := []Cell{
		{Measure: falsePositives, Nominal: alpha, Sense: sense, Count: null.significant, Experiments: null.experiments},
		verdicts,
		{Measure: peeking, Nominal: alpha, Sense: Untested, Count: null.anyDay, Experiments: null.withDays},
		{Measure: peekingVerdicts, Nominal: alpha, Sense: Untested, Count: null.anyDayDecided, Experiments: null.withDays},
		{Measure: differenceCoverage, Nominal: 1 - alpha, Sense: sense, Count: all.difference, Experiments: all.experiments},
		{Measure: improvementCoverage, Nominal: 1 - alpha, Sense: sense, Count: all.improvement, Experiments: all.experiments},
		powerCell(t, r, metric, s, o),
		{Measure: powerVerdicts, Sense: Untested, Count: effect.decided, Experiments: effect.experiments},
		{Measure: wrongSigns, Nominal: alpha / 2, Sense: AtMost, Count: effect.wrongSign, Experiments: effect.experiments},
	}
	if bayesian {
		return cells
	}
	return append(
		cells,
		Cell{Measure: lookErrors, Nominal: alpha, Sense: AtMost, Count: null.anyLook, Experiments: null.withLooks},
		Cell{Measure: lookDifference, Nominal: 1 - alpha, Sense: AtLeast, Count: all.lookDifference, Experiments: all.withLooks},
		Cell{Measure: lookImprovement, Nominal: 1 - alpha, Sense: AtLeast, Count: all.lookImprovement, Experiments: all.withLooks},
	)
}

// powerTolerance is the allowed difference between the power and its normal
// approximation.
const powerTolerance = 0.1

// powerCell returns a cell that compares the power with its normal
// approximation. Power is tested only for frequentist conversion rates of two
// equal groups.
func powerCell(t *tally, r rule, metric string, s *shape, o *Options) Cell {
	e := experiment{effect: true, shape: s}
	n := float64(o.Visitors) * s.scale / 100
	variance := func(p float64) float64 {
		if metric == valuePerVisitor { // E x² - (E x)², where x = 0 for visitors who do not convert
			return meanValue * meanValue * (p*math.Exp(spread*spread) - p*p)
		}
		return p * (1 - p)
	}
	d, _ := e.trueEffect(metric, 1)
	pc := e.conversionRate(0)
	pt := e.conversionRate(1)
	se := math.Sqrt(variance(pc)/(n*float64(s.shares[0])) + variance(pt)/(n*float64(s.shares[1])))
	z := distuv.UnitNormal.Quantile(1 - r.alpha()/2)
	approximation := distuv.UnitNormal.CDF(d/se-z) + distuv.UnitNormal.CDF(-d/se-z)
	c := Cell{Measure: power, Nominal: approximation, Sense: Untested, Count: t.effect.significant, Experiments: t.effect.experiments}
	isExactRate := metric == goalConversionRate && s.balanced && s.frequent
	if isExactRate && len(s.shares) == 2 && r.methodology == catalogue.Frequentist {
		c.Sense = Approximate
		c.least = max(0, approximation-powerTolerance)
		c.most = min(1, approximation+powerTolerance)
	}
	return c
}

// acceptableRates returns the range of acceptable true rates.
func (c *Cell) acceptableRates() (least, most float64) {
	least, most = c.Nominal, c.Nominal
	slack := tolerance * min(c.Nominal, 1-c.Nominal)
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

// confidence is the simultaneous confidence level of all acceptance bands.
const confidence = 0.999

// testCells computes the acceptance bands of all tested cells and marks cells
// outside their bands. By Bonferroni's inequality all observed rates of a
// correct system are inside their bands with a probability of at least
// confidence.
func testCells(r *Result) {
	r.Tested = 0
	r.Outside = 0
	for i := range r.Cells {
		if r.Cells[i].Sense != Untested {
			r.Tested++
		}
	}
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Sense == Untested {
			continue
		}
		tail := (1 - confidence) / float64(r.Tested)
		if c.Sense == Exact || c.Sense == Approximate {
			tail /= 2
		}
		least, most := c.acceptableRates()
		n := float64(c.Experiments)
		c.Lower = float64(lowerQuantile(c.Experiments, least, tail)) / n
		c.Upper = float64(upperQuantile(c.Experiments, most, tail)) / n
		if c.Sense == AtMost {
			c.Lower = 0
		}
		if c.Sense == AtLeast {
			c.Upper = 1
		}
		c.Outside = c.Observed < c.Lower || c.Observed > c.Upper
		countIf(&r.Outside, c.Outside)
	}
}

// upperQuantile returns the smallest k with P(X > k) <= tail for a binomial X
// with n trials and probability p.
func upperQuantile(n int, p, tail float64) int {
	if p <= 0 {
		return 0
	}
	if p >= 1 {
		return n
	}
	b := distuv.Binomial{N: float64(n), P: p}
	return sort.Search(n, func(k int) bool { return b.Survival(float64(k)) <= tail })
}

// lowerQuantile returns the largest k with P(X < k) <= tail for a binomial X
// with n trials and probability p.
func lowerQuantile(n int, p, tail float64) int { return n - upperQuantile(n, 1-p, tail) }
