package metric

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// # The price of a question
//
// Every question has a weight, which its text and the order of first appearances determine, and the weights of all
// questions have a sum of at most 1. An answer holds if weight · evidence >= 1 / ErrorRate, where the evidence is an
// e-process: without an effect its expectation is at most 1 at any time, see stats.RateEvidence. By Ville's inequality,
// a question without an effect ever holds with probability at most weight · ErrorRate, and by the union bound any does
// with probability at most ErrorRate: whatever anybody asks, how often and why, without a record of questions.
//
// The weights are a prefix code (Kraft's inequality). A question is written as a sequence of choices, the weights of
// the options of each choice have a sum of at most 1, and the weight of the question is their product. A set of k parts
// has k! sequences, and so k! times the weight of one.
//
// See Holm (1979) and Genovese, Roeder and Wasserman (2006) for weights of hypotheses; Vovk and Wang (2021) for
// e-values.

// WeightsVersion is the version of the table of weights. Another table changes what holds.
const WeightsVersion = 1

// ErrorRate is the maximum probability that any answer of a campaign ever holds by chance.
const ErrorRate = .05

// MaxDeclaredQuestions is the maximum number of questions that are declared before the first view.
const MaxDeclaredQuestions = 20

// Question is an answer that a report may give: a metric of some visitors, compared between a treatment and control.
type Question struct {
	Metric   *Metric
	Cap      string     // as written, if it is not the metric's own; empty: the own one
	Visitors *Condition // nil: all
	FromDay  int        // day of the campaign on which the dates begin, from 1; 0: they are open
	ToDay    int        // last day of the dates; 0: they are open
	Split    *SplitRow  // nil: no split
}

// SplitRow is a row of a split: the part of a metric with a value of a text.
type SplitRow struct {
	Field Field
	Value string
}

// Ranks are the orders of first appearance in a campaign, from 1, in which the events of all variations count alike. So
// they are independent of effects. What has not appeared has no rank: a question about it has the weight 0, because it
// has no data.
type Ranks struct {
	// Metrics has the canonical texts of the metrics with a name: the primary metric, guardrails, secondary metrics,
	// declared metrics, then the aliases of the other goals.
	Metrics []string
	// Declared has the questions that were declared before the first view, at most MaxDeclaredQuestions. The rows of a
	// breakdown or a split share the weight of their question.
	Declared []Ask

	Goals      map[int64]int
	Properties map[string]int
	Attributes map[string]int           // the website's own ones
	Values     map[Field]map[string]int // of attributes, properties and lines
}

// The table of weights. Each map, and each group of constants, has a sum of at most 1.
const (
	weightOfNamedMetrics = 7. / 8
	weightOfExpressions  = 1. / 8
)

// callWeights are the weights of the calls of expressions, of a ratio, and of a metric with another cap.
var callWeights = map[string]float64{
	"converted": 1. / 2, "sum": 1. / 4, "count": 1. / 8, "ratio": 1. / 16, "funnel": 1. / 32, "max": 1. / 64,
	"distinct": 1. / 128, "cap": 1. / 128,
}

// The weights of the fields of sum and max, of distinct, of conditions of events, and of splits. "" is any property.
var (
	numberWeights = map[string]float64{
		"value": 1. / 2, "profit": 1. / 4, "items.revenue": 1. / 8, "items.profit": 1. / 32, "items.quantity": 1. / 32,
		"extraValue": 1. / 32, "": 1. / 32,
	}
	textWeights = map[string]float64{
		"items.product": 1. / 2, "items.category": 1. / 4, "items.brand": 1. / 8, "items.variant": 1. / 16, "": 1. / 16,
	}
	conditionWeights = map[string]float64{
		"items.category": 3. / 16, "items.product": 3. / 16, "value": 1. / 8, "items.brand": 1. / 16,
		"items.variant": 1. / 16, "items.revenue": 1. / 32, "items.quantity": 1. / 32, "profit": 1. / 32,
		"extraValue": 1. / 64, "items.profit": 1. / 64, "": 1. / 4,
	}
	splitWeights = map[string]float64{
		"items.product": 13. / 16, "items.category": 1. / 8, "items.brand": 1. / 64, "items.variant": 1. / 64,
		"": 1. / 32,
	}
)

// The weights of operators of texts and of numbers. A list of values has the operator of equality.
var (
	textOperators = map[string]float64{"=": 7. / 8, "not =": 1. / 16, "like": 1. / 32, "not like": 1. / 32}

	numberOperators = map[string]float64{
		"<": 3. / 16, "<=": 3. / 16, ">": 3. / 16, ">=": 3. / 16, "=": 1. / 8,
		"!=": 1. / 64, "not =": 1. / 64, "not !=": 1. / 64, "not <": 1. / 64, "not <=": 1. / 64, "not >": 1. / 64,
		"not >=": 1. / 64,
	}
)

// shape has the weights of the forms of a condition: none; comparisons that are all true; and any other.
type shape struct{ none, all, other float64 }

// The shapes of a condition of events; of visitors; and of visitors of a row of a split. The rest of the weight of
// visitors is for dates and splits.
var (
	eventShape    = shape{1. / 2, 3. / 8, 1. / 8}
	visitorShape  = shape{1. / 4, 1. / 2, 1. / 32}
	splitShape    = shape{7. / 8, 3. / 32, 1. / 32}
	weightOfDates = 1. / 32
	weightOfSplit = 3. / 16
)

// WeighQuestion returns the weight of a question.
func (r *Ranks) WeighQuestion(q *Question) float64 {
	w := r.weighMetric(q.Metric, q.Cap) * r.weighVisitors(q)
	if len(r.Declared) == 0 {
		return w
	}
	w /= 2
	for i := range r.Declared {
		w = math.Max(w, r.weighRow(&r.Declared[i], q)/(2*float64(len(r.Declared))))
	}
	return w
}

// weighRow returns the weight of a question among the rows of a declared one; 0: it is none of them.
func (r *Ranks) weighRow(declared *Ask, q *Question) float64 {
	isChanged := q.Cap != "" || q.FromDay > 0 || q.ToDay > 0
	if isChanged || q.Metric.String() != declared.Metric.String() {
		return 0
	}
	w := 1.
	visitors := q.Visitors
	for _, name := range declared.Dimensions {
		value, others, is := visitors.splitOff(name)
		if !is {
			return 0
		}
		w *= r.weighValue(Field{OfAttribute, name, false}, value)
		visitors = others
	}
	if visitors.formatKey() != declared.Visitors.formatKey() {
		return 0
	}
	switch {
	case q.Split == nil && declared.Split == nil:
		return w
	case q.Split == nil || declared.Split == nil || q.Split.Field != *declared.Split:
		return 0
	default:
		return w * r.weighValue(q.Split.Field, q.Split.Value)
	}
}

// splitOff returns the value that a condition requires of an attribute, and the other conditions that it requires.
func (c *Condition) splitOff(attribute string) (value string, others *Condition, is bool) {
	if c == nil {
		return "", nil, false
	}
	parts := []*Condition{c}
	if c.Operator == And {
		parts = c.Parts
	}
	for i, part := range parts {
		if part.Operator == Equal && part.Field.Name == attribute {
			rest := slices.Delete(slices.Clone(parts), i, i+1)
			return part.Texts[0], JoinConditions(rest...), true
		}
	}
	return "", nil, false
}

// NeededEvidence returns the evidence from which an answer holds. The treatments of a campaign share the weight of a
// question. It is infinite if the weight is 0.
func NeededEvidence(weight float64, treatments int) float64 {
	return float64(treatments) / weight / ErrorRate
}

// PValue returns a p-value that is valid whenever it is read, and adjusted for all questions: it is at most ErrorRate
// exactly if the answer holds.
func PValue(evidence, needed float64) float64 { return math.Min(1, needed/evidence*ErrorRate) }

// formatKey returns a text that is equal for conditions that differ only in the places of their negations.
func (c *Condition) formatKey() string {
	if c == nil {
		return ""
	}
	return c.withNegationsInside(false).String()
}

// weighRank returns the weight of a rank, 1/(j(j+1)). The sum over all ranks is 1.
func weighRank(j int) float64 {
	if j < 1 {
		return 0
	}
	return 1 / (float64(j) * float64(j+1))
}

// weighSize returns the weight of the size k of a set, from 1, with that of its k! orders.
func weighSize(k int) float64 { return 3. / 4 * math.Pow(4, float64(1-k)) * factorial(k) }

func factorial(k int) float64 { return math.Gamma(float64(k + 1)) }

func (r *Ranks) weighMetric(m *Metric, limit string) float64 {
	if limit != "" {
		return weightOfExpressions * callWeights["cap"] * weighCap(limit) * r.weighMetric(m, "")
	}
	if j := slices.Index(r.Metrics, m.String()); j >= 0 {
		return weightOfNamedMetrics * weighRank(j+1)
	}
	w := weightOfExpressions * r.weighQuantity(&m.Numerator)
	if m.Denominator != nil {
		w *= callWeights["ratio"] * r.weighQuantity(m.Denominator)
	}
	return w
}

// weighCap returns the weight of a cap: none, a whole percentile, or another text.
func weighCap(limit string) float64 {
	percentile, err := strconv.Atoi(strings.TrimPrefix(limit, "p"))
	isWhole := err == nil && limit == "p"+strconv.Itoa(percentile)
	switch {
	case limit == "none":
		return 1. / 4
	case isWhole && percentile >= 0 && percentile < 100:
		return 1. / 4 / 100
	default:
		return 1. / 2 * weighText(limit)
	}
}

func (r *Ranks) weighQuantity(q *Quantity) float64 {
	w := callWeights[string(q.Call)] * weighRange(q.Within)
	switch q.Call {
	case Converted:
		w /= 2
		if q.AtLeast > 1 {
			w *= weighRank(q.AtLeast - 1)
		}
	case Sum, Max:
		w *= r.weighField(q.Field, numberWeights)
	case Distinct:
		w *= r.weighField(q.Field, textWeights)
	case Funnel:
		w *= math.Pow(2, float64(1-len(q.Steps)))
	case Count: // nothing to choose
	}
	for i := range q.Steps {
		w *= r.weighGoals(q.Steps[i].Goals) * r.weighCondition(q.Steps[i].Where, eventShape)
	}
	return w
}

// weighRange returns the weight of a range: none, up to 90 whole days, more of them, hours, or a range with a start.
func weighRange(r Range) float64 {
	const (
		day   = 24 * time.Hour
		few   = 90 * day
		more  = float64((MaxWithin - few) / day)
		hours = float64(MaxWithin / time.Hour)
	)
	switch {
	case !r.IsSet():
		return 1. / 2
	case r.From > 0:
		return 1. / 40 / (hours * hours)
	case r.To%day == 0 && r.To > few:
		return 1. / 80 / more
	case r.To%day == 0:
		return 1. / 200
	default:
		return 1. / 40 / hours
	}
}

func (r *Ranks) weighGoals(goals []Goal) float64 {
	if len(goals) == 0 {
		return 1. / 8
	}
	w := weighSize(len(goals))
	for _, g := range goals {
		if g.Action != "" {
			w *= 1. / float64(len(Actions))
		} else {
			w *= weighRank(r.Goals[g.ID])
		}
	}
	if goals[0].Action != "" {
		return 1. / 8 * w
	}
	return 3. / 4 * w
}

// weighField returns the weight of a field of events or lines.
func (r *Ranks) weighField(f Field, weights map[string]float64) float64 {
	if f.Source != OfProperty {
		return weights[f.Name]
	}
	return weights[""] * weighRank(r.Properties[f.Name])
}

// weighVisitors returns the weight of visitors: of dates, of the row of a split, and of a condition.
func (r *Ranks) weighVisitors(q *Question) float64 {
	w := 1.
	if q.FromDay > 0 || q.ToDay > 0 {
		w *= weightOfDates * weighDates(q.FromDay, q.ToDay)
	}
	if q.Split == nil {
		return w * r.weighCondition(q.Visitors, visitorShape)
	}
	w *= weightOfSplit * r.weighField(q.Split.Field, splitWeights) * r.weighValue(q.Split.Field, q.Split.Value)
	return w * r.weighCondition(q.Visitors, splitShape)
}

func weighDates(from, to int) float64 {
	switch {
	case from == 0:
		return 1. / 2 * weighRank(to)
	case to == 0:
		return 1. / 4 * weighRank(from)
	default:
		return 1. / 4 * weighRank(from) * weighRank(to)
	}
}

func (r *Ranks) weighValue(f Field, value string) float64 { return weighRank(r.Values[f][value]) }

// weighCondition returns the weight of a condition. f comparisons that are all true have 3 · 4^-f · f! times their
// weights. In any other one, a part is a comparison with the weight 3/4.
func (r *Ranks) weighCondition(c *Condition, s shape) float64 {
	if c == nil {
		return s.none
	}
	c = c.withNegationsInside(false)
	parts := []*Condition{c}
	if c.Operator == And {
		parts = c.Parts
	}
	if slices.ContainsFunc(parts, func(part *Condition) bool { return !part.isComparison() }) {
		return s.other / 2 * r.weighParts(c)
	}
	w := s.all * 3 * math.Pow(4, -float64(len(parts))) * factorial(len(parts))
	for _, part := range parts {
		w *= r.weighComparison(part)
	}
	return w
}

// weighParts returns the weight of the parts of And or Or, of which those that are no comparisons have the other
// operator.
func (r *Ranks) weighParts(c *Condition) float64 {
	w := math.Pow(2, float64(1-len(c.Parts))) * factorial(len(c.Parts))
	for _, part := range c.Parts {
		if part.isComparison() {
			w *= 3. / 4 * r.weighComparison(part)
		} else {
			w *= 1. / 4 * r.weighParts(part)
		}
	}
	return w
}

// isComparison reports whether a condition compares a field, or is the opposite of that.
func (c *Condition) isComparison() bool {
	isPart := c.Operator != Not || c.Parts[0].isComparison()
	return c.Operator != And && c.Operator != Or && isPart
}

// withNegationsInside returns a condition, or its opposite, in which only comparisons are negated (De Morgan's laws).
func (c *Condition) withNegationsInside(negated bool) *Condition {
	switch c.Operator {
	case Not:
		return c.Parts[0].withNegationsInside(!negated)
	case And, Or:
		operator := c.Operator
		if negated {
			operator = map[Operator]Operator{And: Or, Or: And}[operator]
		}
		parts := make([]*Condition, len(c.Parts))
		for i, part := range c.Parts {
			parts[i] = part.withNegationsInside(negated)
		}
		return combineParts(operator, parts)
	default:
		if !negated {
			return c
		}
		return c.oppositeComparison()
	}
}

// opposites has the opposite of each comparison of a number that is never missing.
var opposites = map[Operator]Operator{
	Equal: Unequal, Unequal: Equal, Less: GreaterEqual, GreaterEqual: Less, Greater: LessEqual, LessEqual: Greater,
}

// oppositeComparison returns the opposite of a comparison.
func (c *Condition) oppositeComparison() *Condition {
	if o, is := opposites[c.Operator]; is && c.Field.Number && !c.Field.canBeMissing() {
		return &Condition{Operator: o, Field: c.Field, Numbers: c.Numbers}
	}
	return negateCondition(c)
}

// weighComparison returns the weight of a comparison or of its opposite.
func (r *Ranks) weighComparison(c *Condition) float64 {
	negated := c.Operator == Not
	if negated {
		c = c.Parts[0]
	}
	operator := c.Operator
	isNegatedEqual := operator == Unequal && !c.Field.canBeMissing()
	isList := operator == Equal || operator == In || isNegatedEqual
	w := r.weighConditionField(c.Field)
	if isList {
		operator = Equal
		w *= weighSize(len(c.Texts) + len(c.Numbers))
	}
	name := string(operator)
	if negated || isNegatedEqual {
		name = "not " + name
	}
	for _, n := range c.Numbers {
		w *= weighNumber(n)
	}
	for _, text := range c.Texts {
		if operator == Like {
			w *= weighText(text)
		} else {
			w *= r.weighValue(c.Field, text)
		}
	}
	if c.Field.Number {
		return w * numberOperators[name]
	}
	return w * textOperators[name]
}

// canBeMissing reports whether a field has no value in some events. A missing text is a value, the empty one.
func (f Field) canBeMissing() bool { return f.Number && f.Source == OfProperty }

func (r *Ranks) weighConditionField(f Field) float64 {
	if f.Source != OfAttribute {
		w := r.weighField(f, conditionWeights)
		if f.Source == OfProperty {
			w /= 2 // a text or a number
		}
		return w
	}
	if j := slices.Index(Attributes, f.Name); j >= 0 {
		return weighRank(j + 1)
	}
	own := r.Attributes[f.Name]
	if own < 1 {
		return 0
	}
	return weighRank(len(Attributes) + own)
}

// weighNumber returns the weight of a number, 1/20 for each of its characters, which are digits, a point or a sign. The
// sum over all numbers is at most 3/4.
func weighNumber(n int64) float64 { return math.Pow(20, -float64(len(FormatNumber(n)))) / 2 }

// weighText returns the weight of a text that is not counted by appearance: 1/128 for each of 64 usual bytes, and
// 1/1024 for each other one. The sum over all texts is at most 1.
func weighText(text string) float64 {
	const usual = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789*-"
	w := 1. / 4
	for i := range len(text) {
		if strings.IndexByte(usual, text[i]) >= 0 {
			w /= 128
		} else {
			w /= 1024
		}
	}
	return w
}
