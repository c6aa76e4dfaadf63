package calculator

import (
	"bytes"
	"cmp"
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

// The limits of the looks of an input.
const (
	maxLooks = 200
	maxDays  = 3650
	maxTau   = 1000
)

// parseLooks reads the looks. The numbers of visitors and converted visitors must not decrease
// from look to look, nor exceed those of the variations. Values are not checked, because refunds
// can reduce them.
func (r *inputReader) parseLooks(q *Input, list givenValue) {
	if list.text == nil || len(q.Variations) == 0 {
		return
	}
	texts := list.parseList(1, maxLooks, fmt.Sprintf("an array of 1 to %d looks", maxLooks))
	var before []earlierSums
	last := 0.0
	for i, text := range texts[:min(len(texts), maxLooks)] {
		given, ok := r.parseObject(fmt.Sprintf("%s[%d]", list.path, i), text, lookFields)
		if !ok {
			continue
		}
		look := Look{}
		look.Variations, before = r.lookSums(q, given.fieldValue("variations"), before, i == len(texts)-1)
		look.Tau = r.parseTau(q, given, last, visitorsOf(look.Variations))
		last = math.Max(last, look.Tau)
		q.Looks = append(q.Looks, look)
	}
}

// parseTau reads the time of a look, which must be later than the previous look. If
// plannedVisitors measure the time, it never decreases.
func (r *inputReader) parseTau(q *Input, given givenFields, last float64, visitors int64) float64 {
	days, tau := given.fieldValue("days"), given.fieldValue("tau")
	if q.PlannedVisitors > 0 {
		for _, v := range []givenValue{days, tau} {
			if v.text != nil {
				v.mustBe("omitted, because plannedVisitors measures the time")
			}
		}
		return math.Max(last, float64(visitors)/float64(q.PlannedVisitors))
	}
	var found float64
	switch {
	case days.text != nil && tau.text != nil:
		tau.mustBe("omitted, because days is given")
		return 0
	case tau.text != nil:
		if found = tau.parseNumber(0, maxTau); found == 0 && string(tau.text) == "0" {
			tau.mustBe("above 0")
		}
	default:
		whole, _ := days.parseInteger(1, maxDays)
		found, tau = float64(whole)/float64(max(q.PlannedDays, 1)), days
	}
	if found > 0 && found <= last {
		tau.mustBe("later than the look before")
	}
	return found
}

// earlierSums are the sums of a variation at a look, and their path in the input.
type earlierSums struct {
	Variation
	validCounts
	path string
}

// lookSums reads the sums of a look. before has the sums of the previous look.
func (r *inputReader) lookSums(q *Input, list givenValue, before []earlierSums, isLast bool) ([]Variation, []earlierSums) {
	texts := list.parseList(r.given, r.given, fmt.Sprintf("an array of %d variations, in the order of variations", r.given))
	variations := make([]Variation, len(q.Variations))
	sums := make([]earlierSums, len(q.Variations))
	for i, text := range texts[:min(len(texts), len(q.Variations))] {
		given, ok := r.parseObject(fmt.Sprintf("%s[%d]", list.path, i), text, sumsFields)
		if !ok {
			continue
		}
		today := &q.Variations[i]
		v := &variations[i]
		*v = Variation{ID: today.ID, Control: today.Control, Share: today.Share}
		if id := given.fieldValue("id"); id.text != nil && today.ID >= 0 {
			if n, isWhole := wholeNumber(id.text); !isWhole || n != today.ID {
				id.mustBe(fmt.Sprintf("%d, the id of variations[%d]", today.ID, i))
			}
		}
		sums[i] = earlierSums{validCounts: r.parseSums(q, given, v), path: given.path}
		sums[i].Variation = *v
		if i < len(before) {
			given.compareSums(sums[i], before[i], -1, "at least")
		}
		if isLast {
			given.compareSums(sums[i], earlierSums{*today, r.valid[i], fmt.Sprintf("variations[%d]", i)}, 1, "at most")
		}
	}
	return variations, sums
}

// compareSums rejects sums that are below (-1) or above (1) those of the previous look or of today.
func (f givenFields) compareSums(now, other earlierSums, wrong int, bound string) {
	if now.visitors && other.visitors && cmp.Compare(now.Visitors, other.Visitors) == wrong {
		f.fieldValue("n").mustBe(fmt.Sprintf("%s %d, which is n of %s", bound, other.Visitors, other.path))
	}
	if now.converted && other.converted && cmp.Compare(now.Converted, other.Converted) == wrong {
		f.fieldValue("converted").mustBe(fmt.Sprintf("%s %d, which is converted of %s", bound, other.Converted, other.path))
	}
}

// givenFields holds the fields of a JSON object.
type givenFields struct {
	reader *inputReader
	path   string
	values map[string]json.RawMessage
}

// parseObject parses the fields of an object. It returns false if the text is not an
// object.
func (r *inputReader) parseObject(path string, text json.RawMessage, names []string) (givenFields, bool) {
	f := givenFields{r, path, map[string]json.RawMessage{}}
	decoder := json.NewDecoder(bytes.NewReader(text))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		r.addFault(cmp.Or(path, wholeLine), string(text), `must be an object: {"`+names[0]+`": …}`)
		return f, false
	}
	for decoder.More() {
		token, err := decoder.Token()
		name, isName := token.(string)
		var value json.RawMessage
		if err == nil && isName {
			err = decoder.Decode(&value)
		}
		if err != nil {
			r.addFault(cmp.Or(path, wholeLine), "", "must be one JSON object: "+err.Error())
			return f, false
		}
		_, repeated := f.values[name]
		switch {
		case repeated:
			r.addFault(f.fieldPath(name), string(value), "must be given once")
		case slices.Contains(names, name):
			f.values[name] = value
		default:
			r.addFault(f.fieldPath(name), string(value), "unknown field; "+faults.SuggestName(faults.Clip(name, maxShown), names))
		}
	}
	return f, true
}

func (f givenFields) fieldPath(name string) string {
	if f.path == "" {
		return name
	}
	return f.path + "." + name
}

// fieldValue returns the value of a field. The text is nil if the field is absent.
func (f givenFields) fieldValue(name string) givenValue { return f.valueOr(name, "") }

// valueOr returns the value of a field, or a default if the field is absent.
func (f givenFields) valueOr(name, otherwise string) givenValue {
	v := givenValue{reader: f.reader, path: f.fieldPath(name), text: f.values[name]}
	if v.text == nil || string(v.text) == "null" {
		v.text = nil
		if otherwise != "" {
			v.text = json.RawMessage(otherwise)
		}
	}
	return v
}

// refuseField adds an error if a field that is only valid for the given metric is present.
func (f givenFields) refuseField(name string, metric Metric) {
	if v := f.fieldValue(name); v.text != nil {
		f.reader.addFault(v.path, v.plainText(), fmt.Sprintf("is only valid for the metric %q", metric))
	}
}

// givenValue is the JSON text of a field; nil if the field is absent.
type givenValue struct {
	reader *inputReader
	path   string
	text   json.RawMessage
	unit   string // in error messages
}

// perCent adds the unit to error messages: 20, not 0.2.
func (v givenValue) perCent() givenValue {
	v.unit = " per cent"
	return v
}

func (v givenValue) mustBe(what string) {
	what = "must be " + what + v.unit
	if v.text == nil {
		what = "is missing: " + what
	}
	v.reader.addFault(v.path, v.plainText(), what)
}

// wantNumber adds an error about a number, with a hint if the value has quotes.
func (v givenValue) wantNumber(what string) {
	if bytes.HasPrefix(v.text, []byte(`"`)) {
		v.unit += ", without quotes"
	}
	v.mustBe(what)
}

// plainText returns the value as given; strings without their quotes.
func (v givenValue) plainText() string {
	var text string
	if json.Unmarshal(v.text, &text) == nil {
		return text
	}
	return string(v.text)
}

// parseList returns the elements of a list with a number of elements within bounds.
func (v givenValue) parseList(least, most int, want string) (elements []json.RawMessage) {
	switch {
	case v.text == nil || json.Unmarshal(v.text, &elements) != nil:
		v.mustBe(want)
	case len(elements) < least || len(elements) > most:
		v.mustBe(fmt.Sprintf("%s, have %d", want, len(elements)))
	}
	return elements
}

func (v givenValue) oneOf(allowed ...string) string {
	var text string
	if v.text == nil || json.Unmarshal(v.text, &text) != nil || !slices.Contains(allowed, text) {
		v.mustBe("one of " + strings.Join(allowed, ", "))
		return ""
	}
	return text
}

func (v givenValue) parseBoolean() bool {
	text := string(v.text)
	if text != "true" && text != "false" {
		v.mustBe("true or false")
	}
	return text == "true"
}

func (v givenValue) integerOf(allowed ...int64) int64 {
	n, ok := wholeNumber(v.text)
	if !ok || !slices.Contains(allowed, n) {
		texts := make([]string, len(allowed))
		for i, n := range allowed {
			texts[i] = strconv.FormatInt(n, 10)
		}
		v.wantNumber("one of " + strings.Join(texts, ", "))
	}
	return n
}

// parseInteger parses an integer within bounds. It returns false if the value is
// invalid or absent.
func (v givenValue) parseInteger(least, most int64) (int64, bool) {
	n, ok := wholeNumber(v.text)
	if !ok || n < least || n > most {
		v.wantNumber(fmt.Sprintf("an integer from %d to %d", least, most))
		return 0, false
	}
	return n, true
}

// parseNumber parses a number within bounds. It returns 0 if the value is invalid or
// absent.
func (v givenValue) parseNumber(least, most float64) float64 {
	x, err := strconv.ParseFloat(string(v.text), 64)
	if err == nil && least <= x && x <= most {
		return x
	}
	what := "a number"
	if least != -math.MaxFloat64 {
		what += fmt.Sprintf(" from %v", least)
	}
	if most != math.MaxFloat64 {
		what += fmt.Sprintf(" to %v", most)
	}
	v.wantNumber(what)
	return 0
}

// wholeNumber parses a JSON number whose value is an integer: 5, 5.0 and 5e0
// are equal.
func wholeNumber(text json.RawMessage) (int64, bool) {
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		return n, true
	}
	x, err := strconv.ParseFloat(string(text), 64)
	const reference = 1 << 53
	return int64(x), err == nil && x == math.Trunc(x) && math.Abs(x) <= reference
}
