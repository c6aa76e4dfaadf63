package result

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"lifthouse/engine/metric"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/wording"
	"lifthouse/schema"
	"lifthouse/stats"
)

// Evidence says whether an answer without looks holds: for any number of questions, readers and days, the probability
// that any answer of a campaign without an effect ever holds is at most metric.ErrorRate. The price of a question is
// its weight, which depends on its text alone, and is independent of what else is asked.
type Evidence struct {
	Ratio  float64      `json:"ratio"`            // e-value, see stats.RateEvidence and stats.MeanEvidence
	Needed *float64     `json:"needed"`           // from which the answer holds; null: no ratio suffices
	OneOf  *float64     `json:"oneOf"`            // how many questions are as specific: 1 / weight
	PValue float64      `json:"pValue"`           // valid whenever it is read, and adjusted for all questions
	Holds  bool         `json:"holds"`            // otherwise the answer only describes
	Reason stats.Reason `json:"reason,omitempty"` // why there is no evidence yet
}

// InWords says whether the answer holds, and how strong the evidence must be.
func (e *Evidence) InWords() string {
	var price string
	if e.Needed != nil && e.OneOf != nil {
		price = fmt.Sprintf("; a question as specific as this, one of about %s, needs %s : 1", formatRatio(*e.OneOf),
			formatRatio(*e.Needed))
	}
	switch {
	case e.Reason != "":
		return "Describes: " + e.explainReason() + "."
	case e.Holds:
		return fmt.Sprintf("Holds: evidence %s : 1%s.", formatRatio(e.Ratio), price)
	default:
		return fmt.Sprintf("Describes: evidence %s : 1%s.", formatRatio(e.Ratio), price)
	}
}

// explainReason returns why there is no evidence, without a full stop.
func (e *Evidence) explainReason() string {
	own := map[stats.Reason]string{
		stats.ReasonTooEarly: fmt.Sprintf("evidence needs %d full days", leastEvidenceDays),
		stats.ReasonTooFewConversions: fmt.Sprintf("evidence needs %d conversions in the two variations",
			leastEvidenceConverted),
		stats.ReasonTooFewNonzero: fmt.Sprintf("evidence needs %d visitors with a value in each variation",
			leastEvidenceValues),
	}
	return cmp.Or(own[e.Reason], wording.ExplainReason(e.Reason))
}

// maxShown is the largest number that a text shows; larger ones are more than anybody reads.
const maxShown = 1e15

// formatRatio formats an e-value: with a decimal below 10.
func formatRatio(ratio float64) string {
	if ratio < 10 {
		return wording.FormatNumber(ratio, 1)
	}
	return wording.FormatCount(int64(math.Min(ratio, maxShown)))
}

// The least data for evidence: full days, which include each weekday; converted visitors of a pair for the coin of a
// rate; and visitors with a value in each variation, for means, which are normal only by their number.
const (
	leastEvidenceDays      = 7
	leastEvidenceConverted = 25
	leastEvidenceValues    = 100
)

// reasonDates means that a question has no price, because its dates are not whole hours.
const reasonDates stats.Reason = "DATES_NOT_WHOLE_HOURS"

// HasEvidence reports whether a report has comparisons without looks: it is broken down, filtered, or about a metric
// without a role. A z-score removes values by bounds that come from the data, so no evidence is valid.
func HasEvidence(p *plan.Plan) bool {
	if p.Filters.ZScore != 0 {
		return false
	}
	return p.Dimension != "" || !p.OfAllVisitors() || !hasRole(p)
}

// hasRole reports whether the metric of a report has looks of its own: it is the primary one, a secondary one or a
// guardrail.
func hasRole(p *plan.Plan) bool {
	if p.Split != nil || p.Filters.GoalValue != nil {
		return false
	}
	return slices.ContainsFunc(declaredRoles(p), func(of roleOf) bool {
		return of.Measure == p.Measure() && of.metric == p.Metric
	})
}

// NamedMetrics returns the canonical texts of the metrics that have a name, in the order of their price: the primary
// metric, guardrails, secondary metrics, the other declared metrics, then those of each goal in the order in which the
// goals appeared.
func NamedMetrics(p *plan.Plan, appeared []string) (texts []string) {
	addText := func(text string) {
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	add := func(of query.Metric, goal int64) {
		if m, known := metric.NewAlias(string(of), goalOf(goal)); known {
			addText(m.String())
			return
		}
		about := p.AboutMeasure(plan.Measure{Expression: string(of)})
		addText(about.Written.WithGoalIDs().String())
	}
	d := &p.Declared
	add(d.Metric, d.GoalID)
	for _, g := range d.Guardrails {
		add(g.Metric, g.GoalID)
	}
	for _, g := range d.Secondary {
		add(g.Metric, g.GoalID)
	}
	for _, m := range p.DeclaredMetrics() {
		addText(m.Written.WithGoalIDs().String())
	}
	for _, id := range appeared {
		goal, _ := strconv.ParseInt(id, 10, 64) // it was formatted
		for _, of := range query.GoalMetrics {
			add(of, goal)
		}
	}
	return texts
}

// DeclaredQuestions returns the questions that were declared before the first view.
func DeclaredQuestions(p *plan.Plan) (declared []metric.Ask) {
	names := p.DeclaredNames()
	for _, text := range p.Declared.Questions {
		ask, err := metric.ParseAsk(text, names)
		if err != nil { // a goal was removed since
			continue
		}
		ask.Metric = ask.Metric.WithGoalIDs()
		declared = append(declared, *ask)
	}
	return declared
}

// goalOf returns a goal as it is written in metrics; nil: all goals.
func goalOf(id int64) *metric.Goal {
	if id == 0 {
		return nil
	}
	return &metric.Goal{ID: id}
}

// TextsOf returns the texts whose values a question names: those of its conditions, its dimension and its split.
func TextsOf(p *plan.Plan) (fields []metric.Field) {
	add := func(all ...metric.Field) {
		for _, f := range all {
			if !f.Number && !slices.Contains(fields, f) {
				fields = append(fields, f)
			}
		}
	}
	add(visitorsOf(p).ReadFields()...)
	for _, attribute := range p.Dimension.Attributes() {
		add(attributeOf(attribute))
	}
	if p.Split != nil {
		add(*p.Split)
	}
	if p.Expression != nil {
		for _, q := range p.Expression.Quantities() {
			for i := range q.Steps {
				add(q.Steps[i].Where.ReadFields()...)
			}
		}
	}
	return fields
}

func attributeOf(name string) metric.Field {
	return metric.Field{Source: metric.OfAttribute, Name: name}
}

// visitorsOf returns the condition of the visitors of a report: its filters and the condition that it writes; nil: all.
func visitorsOf(p *plan.Plan) *metric.Condition {
	all := []*metric.Condition{p.Filters.Visitors}
	for _, filter := range p.Filters.Lists {
		operator := metric.In
		if len(filter.Values) == 1 {
			operator = metric.Equal
		}
		all = append(all, metric.CompareText(attributeOf(filter.Attribute), operator, filter.Values...))
	}
	for _, filter := range p.Filters.Texts {
		operator := metric.Equal
		if strings.Contains(filter.Pattern, "*") {
			operator = metric.Like
		}
		all = append(all, metric.CompareText(attributeOf(filter.Attribute), operator, filter.Pattern))
	}
	return metric.JoinConditions(all...)
}

// questionOf returns the question of a report whose price is asked. first is the day of the first view.
func questionOf(p *plan.Plan, first time.Time) *metric.Question {
	q := &metric.Question{Visitors: visitorsOf(p)}
	if p.Written != nil {
		q.Metric = p.Written.WithGoalIDs()
	} else {
		q.Metric, _ = metric.NewAlias(string(p.Metric), goalOf(p.GoalID))
	}
	if least := p.Filters.GoalValue; least != nil {
		q.Metric = q.Metric.WithCondition(plan.AtLeastValue(least))
	}
	if p.Asked.Cap != nil {
		q.Cap = p.Asked.Cap.String()
	}
	if w := p.Asked.ConversionWindow; w != nil {
		q.Metric = q.Metric.WithRange(metric.Range{From: w.From, To: w.To})
	}
	day := func(at time.Time) int { return max(1, 1+int(at.Sub(first)/(24*time.Hour))) }
	if from := p.Filters.From; !from.IsZero() {
		q.FromDay = day(from)
	}
	if to := p.Filters.To; !to.IsZero() {
		q.ToDay = day(to)
	}
	return q
}

// weightOfHours is the weight of the hour of a date among the 24 hours of its day.
const weightOfHours = 1. / 24

// weigh returns the weight of a question of the report; reason says why it has none.
func weigh(p *plan.Plan, ranks *metric.Ranks, q *metric.Question) (weight float64, reason stats.Reason) {
	weight = ranks.WeighQuestion(q)
	for _, date := range []time.Time{p.Filters.From, p.Filters.To} {
		switch {
		case date.IsZero() || date.Equal(date.UTC().Truncate(24*time.Hour)):
		case date.Equal(date.Truncate(time.Hour)):
			weight *= weightOfHours
		default:
			return 0, reasonDates
		}
	}
	return weight, ""
}

// Price has what the price of a question depends on.
type Price struct {
	Ranks    *metric.Ranks
	question *metric.Question
	reason   stats.Reason // why nothing has evidence
}

// NewPrice returns the price of the questions of a report. first is the first view of the subject.
func NewPrice(p *plan.Plan, found *moments.Rows, first time.Time, ranks *metric.Ranks) *Price {
	price := &Price{Ranks: ranks, question: questionOf(p, first.UTC().Truncate(24*time.Hour))}
	from := schema.LaterTime(first, p.Filters.From)
	until := found.Complete
	if to := p.Filters.To; !to.IsZero() && to.Before(until) {
		until = to
	}
	if fullDaysBetween(from, until) < leastEvidenceDays {
		price.reason = stats.ReasonTooEarly
	}
	return price
}

// addEvidence adds their evidence to the comparisons of the visitors of sums, which answer a question. With a sample
// ratio mismatch, which the checks of the visitors have found, there is none.
func (x *Price) addEvidence(
	p *plan.Plan, q *metric.Question, checks *Checks, sums *sliceSums, comparisons []*Comparison,
) {
	weight, reason := weigh(p, x.Ranks, q)
	if x.reason != "" {
		reason = x.reason
	}
	if check := checks.SampleRatio; check != nil && check.Mismatch {
		reason = stats.ReasonSampleRatioMismatch
	}
	sums.addEvidence(p, comparisons, weight, reason)
}

// AddEvidence adds the evidence of the comparisons that have no looks.
func (r *Report) AddEvidence(p *plan.Plan, found *moments.Rows, price *Price) {
	question := price.question
	add := func(of *Slice, sums *sliceSums, q *metric.Question) {
		comparisons := make([]*Comparison, len(of.Variations))
		for i := range of.Variations {
			comparisons[i] = of.Variations[i].Comparison
		}
		price.addEvidence(p, q, &of.Checks, sums, comparisons)
	}
	if !p.OfAllVisitors() || !hasRole(p) {
		whole := sumRows(found.Whole, p)
		add(&r.Slice, &whole, question)
	}
	if p.Dimension == "" {
		return
	}
	byValue := map[string][]moments.GroupMoments{}
	for _, row := range found.Slices {
		if !row.Others {
			byValue[row.Dimension] = append(byValue[row.Dimension], row)
		}
	}
	attributes := p.Dimension.Attributes()
	for i := range r.Breakdown {
		b := &r.Breakdown[i]
		if b.Value == otherValues { // its visitors change
			continue
		}
		conditions := []*metric.Condition{question.Visitors}
		for k, value := range moments.SplitValues(b.of) {
			conditions = append(conditions, metric.CompareText(attributeOf(attributes[k]), metric.Equal, value))
		}
		of := *question
		of.Visitors = metric.JoinConditions(conditions...)
		sums := sumRows(byValue[b.of], p)
		add(&b.Slice, &sums, &of)
	}
}

// fullDaysBetween returns the number of full days (UTC) after a first view, up to a time.
func fullDaysBetween(first, through time.Time) int {
	const day = 24 * time.Hour
	from := first.UTC().Add(day - 1).Truncate(day)
	return int(through.UTC().Truncate(day).Sub(from) / day)
}

// addEvidence adds the evidence of each comparison, by variation, with a weight. reason says why there can be none.
func (c *sliceSums) addEvidence(p *plan.Plan, comparisons []*Comparison, weight float64, reason stats.Reason) {
	periods := c.periodsOfSamples(p)
	treatments := len(p.Variations) - 1
	for i, shown := range comparisons {
		if shown == nil {
			continue
		}
		e := &Evidence{Ratio: 1, PValue: 1, Reason: reason}
		if weight > 0 {
			e.Needed = new(metric.NeededEvidence(weight, treatments))
			e.OneOf = new(1 / weight)
		}
		if e.Reason == "" {
			e.Ratio, e.Reason = evidenceOf(p, periods, i)
		}
		if e.Reason == "" && e.Needed != nil {
			e.PValue = metric.PValue(e.Ratio, *e.Needed)
			e.Holds = e.Ratio >= *e.Needed
		}
		shown.Evidence = e
	}
}

// evidenceOf returns the evidence of a treatment over the periods of equal shares, or why there is none.
func evidenceOf(p *plan.Plan, periods []stats.Period, treatment int) (ratio float64, reason stats.Reason) {
	var coins []stats.EvidencePeriod
	var strata []stats.Stratum
	var converted, control, treated int64
	for _, period := range periods {
		shares := period.Shares[0] + period.Shares[treatment]
		if !(period.Shares[0] > 0 && period.Shares[treatment] > 0) {
			return 1, stats.ReasonNoTraffic
		}
		strata = append(strata, stats.Stratum{Control: period.Samples[0], Treatment: period.Samples[treatment]})
		of, isRate := period.Samples[0].(stats.Rate)
		other, _ := period.Samples[treatment].(stats.Rate)
		if isRate {
			coins = append(coins, stats.EvidencePeriod{
				Control: of, Treatment: other, TreatmentShare: period.Shares[treatment] / shares,
			})
			converted += of.Converted + other.Converted
			continue
		}
		control += nonzeroOf(period.Samples[0])
		treated += nonzeroOf(period.Samples[treatment])
	}
	isNested := p.Expression != nil && p.Expression.Test() == metric.TestNested
	switch {
	case len(coins) > 0 && converted < leastEvidenceConverted:
		return 1, stats.ReasonTooFewConversions
	case len(coins) > 0 && !isNested:
		ratio = stats.RateEvidence(coins)
	case len(coins) == 0 && min(control, treated) < leastEvidenceValues:
		return 1, stats.ReasonTooFewNonzero
	default:
		// The denominators of a nested ratio may differ, so that its conversions are no coins with the declared share.
		effect := stats.NewPooledEffect(strata)
		if effect.Reason != "" {
			return 1, effect.Reason
		}
		ratio = stats.MeanEvidence(effect)
	}
	return math.Min(ratio, math.MaxFloat64), ""
}

// nonzeroOf returns the number of visitors of a mean whose value is not 0.
func nonzeroOf(sample stats.Sample) int64 {
	if mean, is := sample.(stats.Mean); is {
		return mean.Nonzero
	}
	return 0
}
