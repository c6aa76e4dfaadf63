package calculator

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"lifthouse/engine/query"
	"lifthouse/schema/faults"
	"lifthouse/stats"
)

// MaxInput is the maximum length of an input in bytes.
const MaxInput = 1 << 20

// Limits of an input.
const (
	leastVariations = 2
	maxVariations   = 21 // control and the 20 that a campaign may have
	// maxVisitors is the largest number for which package stats can distinguish
	// rates.
	maxVisitors = 1_000_000_000_000
	// maxFaults and maxShown limit the length of error reports.
	maxFaults = 100
	maxShown  = 80 // bytes
)

// wholeLine is the field of an error that concerns the whole line.
const wholeLine = "line"

// The field names of an input and of its parts.
var (
	inputFields     = []string{"metric", "variations", "significanceLevel", "methodology", "power", "mde", "plannedDays", "plannedVisitors", "looks", "prior", "nonnegative"}
	priorFields     = []string{"mean", "standardDeviation"}
	variationFields = []string{"id", "control", "share", "n", "converted", "mean", "variance"}
	lookFields      = []string{"tau", "days", "variations"}
	sumsFields      = []string{"id", "n", "converted", "mean", "variance"}
)

// ParseInput parses a line of JSON. It rejects unknown and repeated
// fields. null means absent, and 5.0 is an integer. The error is an
// InvalidError with all faults.
func ParseInput(line []byte) (*Input, error) {
	r := &inputReader{faults: faults.Collector{Most: maxFaults}}
	input := r.parseLine(line)
	return input, query.InvalidParameters(r.faults.WithRest(wholeLine, "and %d more errors")...)
}

// inputReader collects all errors of an input.
type inputReader struct {
	given  int           // number of variations
	valid  []validCounts // by variation
	faults faults.Collector
}

func (r *inputReader) addFault(field, value, detail string) {
	r.faults.Add(faults.Clip(field, maxShown), faults.Clip(value, maxShown), detail)
}

func (r *inputReader) parseLine(line []byte) *Input {
	var text json.RawMessage
	var syntax *json.SyntaxError
	switch err := json.Unmarshal(line, &text); {
	case len(line) > MaxInput:
		r.addFault(wholeLine, "", fmt.Sprintf("must have at most %d bytes", MaxInput))
		return nil
	case !utf8.Valid(line):
		r.addFault(wholeLine, "", "must be UTF-8")
		return nil
	case errors.As(err, &syntax):
		at := min(int(syntax.Offset), len(line))
		r.addFault(wholeLine, strings.ToValidUTF8(string(line[max(0, at-20):at]), ""), fmt.Sprintf("must be one JSON object: %v, at byte %d", err, at))
		return nil
	}
	given, ok := r.parseObject("", text, inputFields)
	if !ok {
		return nil
	}
	q := &Input{
		Metric:            Metric(given.fieldValue("metric").oneOf(string(MetricBinary), string(MetricMean))),
		SignificanceLevel: int(given.valueOr("significanceLevel", "90").perCent().integerOf(80, 90, 95, 100)),
		Methodology:       stats.Methodology(given.valueOr("methodology", `"frequentist"`).oneOf(string(stats.MethodologyFrequentist), string(stats.MethodologyBayesian))),
		MDE:               given.valueOr("mde", "20").perCent().parseNumber(1, 100),
		NonNegative:       given.valueOr("nonnegative", "false").parseBoolean(),
	}
	power, _ := given.valueOr("power", "80").perCent().parseInteger(60, 99)
	q.Power = int(power)
	if planned := given.fieldValue("plannedVisitors"); planned.text != nil {
		q.PlannedVisitors, _ = planned.parseInteger(1, maxVisitors)
		if days := given.fieldValue("plannedDays"); days.text != nil {
			days.mustBe("omitted, because plannedVisitors measures the time")
		}
	}
	days, _ := given.valueOr("plannedDays", "28").parseInteger(1, maxDays)
	q.PlannedDays = int(days)
	q.Prior = r.parsePrior(q, given.fieldValue("prior"))
	r.parseVariations(q, given.fieldValue("variations"))
	r.parseLooks(q, given.fieldValue("looks"))
	return q
}

// parsePrior returns the prior of the lifts; nil: flat priors.
func (r *inputReader) parsePrior(q *Input, given givenValue) *stats.Prior {
	var text string
	switch bayesian := q.Methodology == stats.MethodologyBayesian; {
	case given.text == nil && bayesian:
		return stats.DefaultPrior(q.MDE / 100)
	case given.text == nil:
		return nil
	case !bayesian:
		given.mustBe("omitted unless methodology is bayesian")
		return nil
	case json.Unmarshal(given.text, &text) == nil:
		given.oneOf("flat")
		return nil
	}
	fields, ok := r.parseObject(given.path, given.text, priorFields)
	if !ok {
		return nil
	}
	return &stats.Prior{
		Mean:              fields.valueOr("mean", "0").perCent().parseNumber(-90, 1000) / 100,
		StandardDeviation: fields.fieldValue("standardDeviation").perCent().parseNumber(0.1, 1000) / 100,
	}
}

func (r *inputReader) parseVariations(q *Input, list givenValue) {
	texts := list.parseList(leastVariations, maxVariations, fmt.Sprintf("an array of %d to %d variations", leastVariations, maxVariations))
	r.given = len(texts)
	whole := true
	for i, text := range texts[:min(len(texts), maxVariations)] {
		given, ok := r.parseObject(fmt.Sprintf("%s[%d]", list.path, i), text, variationFields)
		if ok {
			r.parseVariation(q, i, given)
			continue
		}
		whole = false
		q.Variations, r.valid = append(q.Variations, Variation{ID: -1}), append(r.valid, validCounts{})
	}
	if whole {
		r.checkShares(q, list.path)
	}
	if !slices.ContainsFunc(q.Variations, func(v Variation) bool { return v.Control }) && len(texts) > 0 {
		q.Variations[0].Control = true
	}
}

func (r *inputReader) parseVariation(q *Input, i int, given givenFields) {
	id, control := given.valueOr("id", strconv.Itoa(i)), given.valueOr("control", "false")
	v := Variation{Control: control.parseBoolean()}
	var known bool
	v.ID, known = id.parseInteger(0, math.MaxInt64)
	for j, other := range q.Variations {
		if known && other.ID == v.ID {
			id.mustBe(fmt.Sprintf("unique: variations[%d] has the same id", j))
		}
		if other.Control && v.Control {
			control.mustBe(fmt.Sprintf("false: variations[%d] is control already", j))
		}
	}
	if !known {
		v.ID = -1
	}
	if share := given.fieldValue("share"); share.text != nil {
		value := share.perCent().parseNumber(0, 100)
		v.Share = &value
	}
	r.valid = append(r.valid, r.parseSums(q, given, &v))
	q.Variations = append(q.Variations, v)
}

// validCounts reports which counts of a variation are valid.
type validCounts struct{ visitors, converted bool }

// parseSums reads the sums of a variation.
func (r *inputReader) parseSums(q *Input, given givenFields, v *Variation) (valid validCounts) {
	v.Visitors, valid.visitors = given.fieldValue("n").parseInteger(0, maxVisitors)
	visitors := v.Visitors
	if !valid.visitors {
		visitors = maxVisitors // avoids further errors about this value
	}
	switch q.Metric {
	case MetricBinary:
		given.refuseField("mean", MetricMean)
		given.refuseField("variance", MetricMean)
		converted := given.fieldValue("converted")
		v.Converted, valid.converted = converted.parseInteger(0, maxVisitors)
		if valid.converted && v.Converted > visitors {
			converted.mustBe(fmt.Sprintf("at most n, which is %d", visitors))
			valid.converted = false
		}
	case MetricMean:
		given.refuseField("converted", MetricBinary)
		v.Mean, v.Variance = given.parseMoments(visitors)
		if q.NonNegative && v.Mean < 0 {
			given.fieldValue("mean").mustBe("at least 0, because nonnegative is true")
		}
	}
	return valid
}

// parseMoments reads the mean and the variance. They are optional where they are
// undefined: the mean without visitors, the variance with fewer than two.
func (f givenFields) parseMoments(visitors int64) (mean, variance float64) {
	if m := f.fieldValue("mean"); visitors > 0 || m.text != nil {
		mean = m.parseNumber(-math.MaxFloat64, math.MaxFloat64)
	}
	if v := f.fieldValue("variance"); visitors > 1 || v.text != nil {
		variance = v.parseNumber(0, math.MaxFloat64)
	}
	return mean, variance
}

// checkShares rejects shares that only some variations have, or that are all 0.
func (r *inputReader) checkShares(q *Input, path string) {
	total, given := 0.0, 0
	for _, v := range q.Variations {
		if v.Share != nil {
			total += *v.Share
			given++
		}
	}
	if given > 0 && total == 0 && len(r.faults.List) == 0 {
		r.addFault(path, "", "at least one share must be above 0")
	}
	for i, v := range q.Variations {
		if given > 0 && v.Share == nil {
			r.addFault(fmt.Sprintf("%s[%d].share", path, i), "", "is missing: either all variations must have a share, or none")
		}
	}
}
