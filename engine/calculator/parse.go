package calculator

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"lifthouse/engine/query"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"
	"lifthouse/stats"
)

// MaxInput is the maximum length of an input in bytes.
const MaxInput = 1 << 20

// Limits of an input.
const (
	leastVariations = 2
	maxVariations   = 21 // control and the 20 that a campaign may have
	// maxVisitors is the largest number for which package stats can distinguish rates.
	maxVisitors = 1_000_000_000_000
	maxLooks    = 200
	maxDays     = 3650
	maxTau      = 1000
	// maxPastTests is the maximum number of past tests: a fit of a thousand takes a tenth of a second.
	maxPastTests = 1000
	// maxFaults and maxShown limit the length of error reports.
	maxFaults = 100
	maxShown  = 80 // bytes
)

// wholeLine is the field of an error that concerns the whole line.
const wholeLine = "line"

// inputText is an input as JSON. A pointer is nil if the field is absent or null. 5.0 is an integer.
type inputText struct {
	Metric            Metric            `yaml:"metric"`
	Variations        []variationText   `yaml:"variations"`
	SignificanceLevel *float64          `yaml:"significanceLevel" default:"90"`
	Methodology       stats.Methodology `yaml:"methodology" default:"frequentist"`
	Power             *float64          `yaml:"power" default:"80"`
	MDE               *float64          `yaml:"mde" default:"20"`
	PlannedDays       *float64          `yaml:"plannedDays"`
	PlannedVisitors   *float64          `yaml:"plannedVisitors"`
	Looks             []lookText        `yaml:"looks"`
	Prior             *catalogue.Prior  `yaml:"prior"`
	NonNegative       bool              `yaml:"nonnegative"`
	Past              []pastText        `yaml:"past"`
}

type variationText struct {
	sumsText `yaml:",inline"`
	Control  bool     `yaml:"control"`
	Share    *float64 `yaml:"share"`
}

type lookText struct {
	Tau        *float64   `yaml:"tau"`
	Days       *float64   `yaml:"days"`
	Variations []sumsText `yaml:"variations"`
}

type sumsText struct {
	ID        *int64   `yaml:"id"`
	Visitors  *float64 `yaml:"n"`
	Converted *float64 `yaml:"converted"`
	Mean      *float64 `yaml:"mean"`
	Variance  *float64 `yaml:"variance"`
}

// ParseInput parses a line of JSON. It rejects unknown and repeated fields. null means absent, and 5.0 is an integer.
// The error is an InvalidError with all faults.
func ParseInput(line []byte) (*Input, error) {
	var given inputText
	var c checker
	document := c.readDocument(line, &given)
	if document == nil {
		return nil, query.InvalidParameters(c.List...)
	}
	q := &Input{Metric: given.Metric, Methodology: given.Methodology, NonNegative: given.NonNegative}
	c.checkMethod(q, &given)
	c.checkPlan(q, &given)
	c.checkPrior(q, given.Prior)
	c.checkVariations(q, given.Variations)
	c.checkLooks(q, given.Looks)
	q.Past = c.checkPast(given.Past)

	found := faults.Collector{Most: maxFaults}
	for _, f := range document.WithFaults(c.List) {
		f.Name = faults.Clip(cmp.Or(f.Name, wholeLine), maxShown)
		f.Value = faults.Clip(f.Value, maxShown)
		f.Line = 0
		found.Append(f)
	}
	return q, query.InvalidParameters(found.WithRest(wholeLine, "and %d more errors")...)
}

type checker struct{ faults.Collector }

// readDocument decodes a line. It returns nil and adds a fault if it is not a JSON object.
func (c *checker) readDocument(line []byte, given *inputText) *catalogue.Document {
	var text json.RawMessage
	var syntax *json.SyntaxError
	err := json.Unmarshal(line, &text)
	switch {
	case len(line) > MaxInput:
		c.Add(wholeLine, "", fmt.Sprintf("must have at most %d bytes", MaxInput))
		return nil
	case !utf8.Valid(line):
		c.Add(wholeLine, "", "must be UTF-8")
		return nil
	case errors.As(err, &syntax):
		at := min(int(syntax.Offset), len(line))
		before := strings.ToValidUTF8(string(line[max(0, at-20):at]), "")
		c.Add(wholeLine, before, fmt.Sprintf("must be one JSON object: %v, at byte %d", err, at))
		return nil
	case bytes.TrimSpace(text)[0] != '{':
		shown := faults.Clip(string(bytes.TrimSpace(text)), maxShown)
		c.Add(wholeLine, shown, `must be an object: {"metric": …}`)
		return nil
	}
	document, err := catalogue.ReadDocument(bytes.NewReader(text), given)
	if _, hasFaults := errors.AsType[faults.List](err); err != nil && !hasFaults {
		c.Add(wholeLine, "", err.Error())
		return nil
	}
	return document
}

// checkMethod checks the metric and the methodology, and sets the significance level.
func (c *checker) checkMethod(q *Input, given *inputText) {
	c.oneOf("metric", string(q.Metric), string(MetricBinary), string(MetricMean))
	c.oneOf("methodology", string(q.Methodology), string(stats.MethodologyFrequentist),
		string(stats.MethodologyBayesian))
	level := given.SignificanceLevel
	if level == nil {
		return
	}
	q.SignificanceLevel = int(*level)
	if !slices.Contains([]float64{80, 90, 95, 100}, *level) {
		c.Add("significanceLevel", formatNumber(*level), "must be one of 80, 90, 95, 100 per cent")
	}
}

// checkPlan sets the power, the minimum effect and the length of the plan, which days or visitors measure.
func (c *checker) checkPlan(q *Input, given *inputText) {
	const defaultDays = 28
	q.Power = int(c.checkWhole("power", given.Power, 60, 99, perCent))
	q.MDE = c.checkNumber("mde", given.MDE, 1, 100, perCent)
	if given.PlannedVisitors != nil {
		q.PlannedVisitors = c.checkWhole("plannedVisitors", given.PlannedVisitors, 1, maxVisitors, "")
		c.refuseField("plannedDays", given.PlannedDays, "must be omitted, because plannedVisitors measures the time")
	}
	q.PlannedDays = defaultDays
	if given.PlannedDays != nil {
		q.PlannedDays = int(c.checkWhole("plannedDays", given.PlannedDays, 1, maxDays, ""))
	}
}

// checkPrior sets the prior of a Bayesian input.
func (c *checker) checkPrior(q *Input, prior *catalogue.Prior) {
	switch {
	case prior == nil:
	case q.Methodology != stats.MethodologyBayesian:
		c.Add("prior", prior.String(), "must be omitted unless methodology is bayesian")
	case prior.IsLearned:
		q.LearnsPrior = true
	default:
		q.Prior = &stats.Prior{
			Mean: c.checkNumber("prior.mean", &prior.Mean, -90, 1000, perCent) / 100,
			StandardDeviation: c.checkNumber("prior.standardDeviation", &prior.StandardDeviation, 0.1, 1000,
				perCent) / 100,
		}
	}
}

// checkVariations sets the variations. The first one is control unless another is declared.
func (c *checker) checkVariations(q *Input, given []variationText) {
	if n := len(given); n < leastVariations || n > maxVariations {
		c.Add("variations", n,
			fmt.Sprintf("must be an array of %d to %d variations, has %d", leastVariations, maxVariations, n))
	}
	control := -1
	for i := range given[:min(len(given), maxVariations)] {
		g := &given[i]
		path := fmt.Sprintf("variations[%d]", i)
		v := Variation{ID: c.checkID(q, path, g.ID), Control: g.Control, Share: g.Share}
		switch {
		case v.Control && control >= 0:
			c.Add(path+".control", true, fmt.Sprintf("must be false: variations[%d] is control already", control))
		case v.Control:
			control = i
		}
		if v.Share != nil {
			c.checkNumber(path+".share", v.Share, 0, 100, perCent)
		}
		c.checkSums(q, path, &g.sumsText, &v)
		q.Variations = append(q.Variations, v)
	}
	if control < 0 && len(q.Variations) > 0 {
		q.Variations[0].Control = true
	}
	c.checkShares(q.Variations)
}

// checkID returns the id of the next variation: that given, or else its index.
func (c *checker) checkID(q *Input, path string, given *int64) int64 {
	id := int64(len(q.Variations))
	if given != nil {
		id = *given
	}
	if id < 0 {
		c.Add(path+".id", id, "must be an integer from 0")
	}
	if other := slices.IndexFunc(q.Variations, func(o Variation) bool { return o.ID == id }); other >= 0 {
		c.Add(path+".id", id, fmt.Sprintf("must be unique: variations[%d] has the same id", other))
	}
	return id
}

// checkShares refuses shares of some variations only, and valid shares that are all 0.
func (c *checker) checkShares(variations []Variation) {
	hasShare := func(v Variation) bool { return v.Share != nil }
	if !slices.ContainsFunc(variations, hasShare) {
		return
	}
	hasPositive := slices.ContainsFunc(variations, func(v Variation) bool { return v.Share != nil && *v.Share > 0 })
	if !hasPositive && len(c.List) == 0 {
		c.Add("variations", "", "at least one share must be above 0")
	}
	for i, v := range variations {
		if !hasShare(v) {
			c.Add(fmt.Sprintf("variations[%d].share", i), "",
				"is missing: either all variations must have a share, or none")
		}
	}
}

// checkSums sets the sums of a variation; invalid counts are noCount. The mean and the variance are optional where they
// are undefined: the mean without visitors, the variance with fewer than two.
func (c *checker) checkSums(q *Input, path string, given *sumsText, v *Variation) {
	v.Visitors = c.checkWhole(path+".n", given.Visitors, 0, maxVisitors, "")
	visitors := v.Visitors
	if visitors == noCount {
		visitors = maxVisitors // avoids further errors about this value
	}
	switch q.Metric {
	case MetricBinary:
		c.refuseField(path+".mean", given.Mean, `is only valid for the metric "mean"`)
		c.refuseField(path+".variance", given.Variance, `is only valid for the metric "mean"`)
		v.Converted = c.checkWhole(path+".converted", given.Converted, 0, maxVisitors, "")
		if v.Converted > visitors {
			c.Add(path+".converted", v.Converted, fmt.Sprintf("must be at most n, which is %d", visitors))
			v.Converted = noCount
		}
	case MetricMean:
		c.refuseField(path+".converted", given.Converted, `is only valid for the metric "binary"`)
		if visitors > 0 || given.Mean != nil {
			v.Mean = c.checkNumber(path+".mean", given.Mean, -math.MaxFloat64, math.MaxFloat64, "")
		}
		if visitors > 1 || given.Variance != nil {
			v.Variance = c.checkNumber(path+".variance", given.Variance, 0, math.MaxFloat64, "")
		}
		if q.NonNegative && v.Mean < 0 {
			c.Add(path+".mean", formatNumber(v.Mean), "must be at least 0, because nonnegative is true")
		}
	}
}

// checkLooks sets the looks. Their time must increase.
func (c *checker) checkLooks(q *Input, given []lookText) {
	if len(given) > maxLooks {
		c.Add("looks", len(given), fmt.Sprintf("must be an array of 1 to %d looks, has %d", maxLooks, len(given)))
	}
	last := 0.0
	for k := range given[:min(len(given), maxLooks)] {
		look := Look{Variations: c.checkLookSums(q, k, &given[k], k == len(given)-1)}
		look.Tau = c.checkLookTime(q, fmt.Sprintf("looks[%d]", k), &given[k], visitorsOf(look.Variations), last)
		last = math.Max(last, look.Tau)
		q.Looks = append(q.Looks, look)
	}
}

// checkLookSums returns the variations at look k, from 0. The numbers of visitors and converted visitors must not
// decrease from look to look, nor exceed those of the variations. Values are not checked, because refunds can reduce
// them.
func (c *checker) checkLookSums(q *Input, k int, given *lookText, isLast bool) []Variation {
	path := fmt.Sprintf("looks[%d].variations", k)
	if n := len(q.Variations); len(given.Variations) != n {
		c.Add(path, len(given.Variations),
			fmt.Sprintf("must be an array of %d variations, in the order of variations", n))
	}
	variations := make([]Variation, len(q.Variations))
	for i := range given.Variations[:min(len(given.Variations), len(q.Variations))] {
		sums := &given.Variations[i]
		today := &q.Variations[i]
		v := &variations[i]
		*v = Variation{ID: today.ID, Control: today.Control, Share: today.Share}
		at := fmt.Sprintf("%s[%d]", path, i)
		if sums.ID != nil && *sums.ID != today.ID {
			c.Add(at+".id", *sums.ID, fmt.Sprintf("must be %d, the id of variations[%d]", today.ID, i))
		}
		c.checkSums(q, at, sums, v)
		if k > 0 {
			c.compareSums(at, v, fmt.Sprintf("looks[%d].variations[%d]", k-1, i), &q.Looks[k-1].Variations[i], -1)
		}
		if isLast {
			c.compareSums(at, v, fmt.Sprintf("variations[%d]", i), today, 1)
		}
	}
	return variations
}

// checkLookTime returns the time of a look. It must be later than last, that of the previous one. If plannedVisitors
// measure the time, it is that of the visitors, and never decreases.
func (c *checker) checkLookTime(q *Input, path string, given *lookText, visitors int64, last float64) (tau float64) {
	if q.PlannedVisitors > 0 {
		c.refuseField(path+".days", given.Days, "must be omitted, because plannedVisitors measures the time")
		c.refuseField(path+".tau", given.Tau, "must be omitted, because plannedVisitors measures the time")
		return math.Max(last, float64(visitors)/float64(q.PlannedVisitors))
	}
	name := path + ".days"
	value := given.Days
	switch {
	case given.Days != nil && given.Tau != nil:
		c.refuseField(path+".tau", given.Tau, "must be omitted, because days is given")
		return 0
	case given.Tau != nil:
		name = path + ".tau"
		value = given.Tau
		tau = c.checkNumber(name, value, 0, maxTau, "")
		if *value == 0 {
			c.Add(name, "0", "must be above 0")
		}
	default:
		tau = float64(c.checkWhole(name, value, 1, maxDays, "")) / float64(max(q.PlannedDays, 1))
	}
	isInDays := q.PlannedVisitors == 0 // less: plannedVisitors is invalid
	if isInDays && tau > 0 && tau <= last {
		c.Add(name, formatNumber(*value), "must be later than the look before")
	}
	return tau
}

// compareSums rejects valid counts that are below (-1) or above (1) those of the previous look or of today.
func (c *checker) compareSums(path string, now *Variation, otherPath string, other *Variation, wrong int) {
	bound := "at least"
	if wrong > 0 {
		bound = "at most"
	}
	compare := func(name string, now, other int64) {
		isKnown := now != noCount && other != noCount
		if isKnown && cmp.Compare(now, other) == wrong {
			c.Add(path+"."+name, now, fmt.Sprintf("must be %s %d, which is %s of %s", bound, other, name, otherPath))
		}
	}
	compare("n", now.Visitors, other.Visitors)
	compare("converted", now.Converted, other.Converted)
}

// perCent is the unit of a number in a message: 20, not 0.2.
const perCent = " per cent"

// formatNumber returns a number as in JSON.
func formatNumber(x float64) string {
	text, _ := json.Marshal(x) // no number of JSON is infinite
	return string(text)
}

func (c *checker) oneOf(path, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		c.Add(path, value, faults.OneOf(allowed...))
	}
}

// refuseField adds an error if a field is given.
func (c *checker) refuseField(path string, given *float64, detail string) {
	if given != nil {
		c.Add(path, formatNumber(*given), detail)
	}
}

// noCount takes the place of an integer that is invalid or absent.
const noCount = -1

// checkWhole returns an integer within bounds, or noCount.
func (c *checker) checkWhole(path string, given *float64, least, most int64, unit string) int64 {
	detail := fmt.Sprintf("must be an integer from %d to %d%s", least, most, unit)
	switch {
	case given == nil:
		c.Add(path, "", "is missing: "+detail)
	case *given != math.Trunc(*given) || *given < float64(least) || *given > float64(most):
		c.Add(path, formatNumber(*given), detail)
	default:
		return int64(*given)
	}
	return noCount
}

// checkNumber returns a number within bounds. It returns 0 if the value is invalid or absent.
func (c *checker) checkNumber(path string, given *float64, least, most float64, unit string) float64 {
	detail := "must be a number"
	if least != -math.MaxFloat64 {
		detail += fmt.Sprintf(" from %v", least)
	}
	if most != math.MaxFloat64 {
		detail += fmt.Sprintf(" to %v", most)
	}
	detail += unit
	switch {
	case given == nil:
		c.Add(path, "", "is missing: "+detail)
	case !(least <= *given && *given <= most):
		c.Add(path, formatNumber(*given), detail)
	default:
		return *given
	}
	return 0
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$`)

// ReadSums parses the numbers of a variation.
func ReadSums(text string) (Metric, map[string]any, error) {
	metric := MetricBinary
	names := []string{"converted", "n"}
	numbers := strings.Split(text, "/")
	if len(numbers) == 1 {
		metric = MetricMean
		names = []string{"n", "mean", "variance"}
		numbers = strings.Split(text, ":")
	}
	if len(numbers) != len(names) {
		return "", nil,
			fmt.Errorf("%s: must be converted/visitors (500/10000) or visitors:mean:variance (10000:4.2:81)",
				text)
	}
	sums := map[string]any{}
	for i, name := range names {
		number := strings.TrimSpace(numbers[i])
		if !jsonNumber.MatchString(number) {
			return "", nil, fmt.Errorf("%s: %q is not a number; use digits only, as in 500/10000 or 10000:4.2:81", text,
				number)
		}
		sums[name] = json.Number(number)
	}
	return metric, sums, nil
}
