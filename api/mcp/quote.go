package mcp

import (
	"fmt"
	"strings"

	"lifthouse/engine/result"
	"lifthouse/engine/wording"
	"lifthouse/stats"
)

// quoter writes sentences about variations, with numbers formatted as on the page.
type quoter struct {
	report          *result.Report // whose metric is quoted; nil: of the calculator
	metric, control string         // in words
	rate            bool
	invalid         bool   // no comparison may be quoted
	level           int    // of intervals, in per cent
	nameSize        int    // maximum, in bytes
	prefix          string // of each sentence
}

func newQuoter(r *result.Report, nameSize int) *quoter {
	q := &quoter{
		report: r, invalid: isInvalid(r.Conclusion), metric: shortenText(metricOf(r), 2*nameSize), rate: r.IsShare(),
		level: r.SignificanceLevel, nameSize: nameSize,
	}
	if len(r.Variations) > 0 {
		q.control = shortenText(r.Variations[0].Name, nameSize)
	}
	return q
}

// metricOf returns the name of the metric of a report, with its goal if the name does not have it.
func metricOf(r *result.Report) string {
	if r.CompareMetric == nil {
		return r.MetricInWords()
	}
	row := result.ScorecardRow{Metric: *r.CompareMetric, Goal: r.Goal}
	return row.MetricInWords()
}

// isInvalid reports whether the split of the visitors makes all comparisons invalid.
func isInvalid(c *result.Conclusion) bool { return c != nil && c.Status == stats.StatusInvalid }

func (q *quoter) quoteVariations(all []result.VariationResults) (sentences []string) {
	for i := range all {
		v := &all[i]
		said := fmt.Sprintf("%s converted", wording.FormatCount(v.ConvertedVisitors))
		if v.Metric != nil {
			said = sayVisitors(v.Metric)
		}
		sentences = append(sentences, q.quoteVariation(shortenText(v.Name, q.nameSize), v.Visitors,
			q.report.EstimateOf(v), v.Comparison, said)...)
	}
	return sentences
}

// sayVisitors returns the number of visitors whose quantity is not 0.
func sayVisitors(m *result.MetricResult) string {
	return wording.FormatCount(m.Visitors) + " of them with a value"
}

// quotePart returns the sentences about a part of a metric.
func (q *quoter) quotePart(part *result.Part) (sentences []string) {
	for i := range part.Variations {
		v := &part.Variations[i]
		of := &q.report.Variations[i]
		sentences = append(sentences, q.quoteVariation(shortenText(of.Name, q.nameSize), of.Visitors,
			v.Metric.Estimate, v.Comparison, sayVisitors(v.Metric))...)
	}
	return sentences
}

// quoteVariation returns the sentences about a variation: its estimate with further counts, and its comparison with
// control.
func (q *quoter) quoteVariation(name string, visitors int64, e result.Estimate, c *result.Comparison,
	counts ...string,
) []string {
	value := "not known"
	if e.Value != nil {
		value = wording.FormatValue(*e.Value, e.Interval, q.rate)
	}
	said := append([]string{q.metric + " " + value, wording.FormatCount(visitors) + " visitors"}, counts...)
	sentences := []string{fmt.Sprintf("%s%s: %s.", q.prefix, name, strings.Join(said, ", "))}
	if c == nil || q.invalid {
		return sentences
	}
	lift := "no lift: " + wording.ExplainReason(c.Improvement.Reason)
	if x := c.Improvement; x.Value != nil {
		lift = "lift " + wording.FormatLift(*x.Value, x.Interval)
		if x.Interval != nil {
			lift += " (" + q.describeInterval(x.Interval) + ")"
		}
	}
	if b := c.Bayesian; b != nil && b.ChanceToBeatControl != nil {
		lift += ", chance to beat control " + wording.FormatChance(*b.ChanceToBeatControl)
	}
	against := fmt.Sprintf("%s%s against %s", q.prefix, name, q.control)
	sentences = append(sentences, fmt.Sprintf("%s on the data of today: %s; %s.", against, lift, c.VerdictInWords()))
	if s := c.Sequential; s != nil && s.Look != nil && s.Improvement != nil {
		sentences = append(sentences, fmt.Sprintf("%s at look %d: the lift has the %s.", against, *s.Look,
			q.describeInterval(s.Improvement)))
	}
	if e := c.Evidence; e != nil {
		sentences = append(sentences, fmt.Sprintf("%s: %s", against, e.InWords()))
	}
	return sentences
}

func (q *quoter) describeInterval(interval *stats.Interval) string {
	return fmt.Sprintf("%d %% interval %s", q.level,
		wording.RangeInWords(interval, func(x float64) string { return wording.FormatLift(x, interval) }))
}

// shortenText returns a text with at most the given size in JSON. It cuts between words, because a number that is cut
// is another number.
func shortenText(text string, most int) string {
	size := func(text string) int { return len(text) + strings.Count(text, `"`) + strings.Count(text, `\`) }
	text = printableText(text)
	if size(text) <= most {
		return text
	}
	cut := text[:min(len(text), most)]
	for size(cut) > most-len("…") {
		cut = cut[:len(cut)-1]
	}
	if at := strings.LastIndexByte(cut, ' '); at > len(cut)/2 {
		cut = cut[:at]
	}
	return strings.ToValidUTF8(cut, "") + "…"
}
