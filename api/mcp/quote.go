package mcp

import (
	"fmt"
	"strings"

	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/stats"
)

// Figures of variations, and the sentences that quote them.

// variation has the figures of a variation that may be quoted, as /v1 returns them.
type variation struct {
	ID          int64          `json:"variationId"`
	Name        string         `json:"name,omitempty"`
	Visitors    int64          `json:"visitors"`
	Converted   *int64         `json:"convertedVisitors,omitempty"`
	Value       *float64       `json:"value"`
	Improvement *result.Effect `json:"improvement,omitempty"` // on the data of today
	Look        *look          `json:"look,omitempty"`        // that concluded, or else the last one
	Chance      *float64       `json:"chanceToBeatControl,omitempty"`
	Verdict     string         `json:"verdict,omitempty"`
}

// look has the figures of a look.
type look struct {
	Number   int            `json:"number"`
	Interval *result.Bounds `json:"interval"` // of the lift
	PValue   *float64       `json:"pValue"`
}

// quoter writes sentences about variations, with numbers formatted as on the page.
type quoter struct {
	compared        query.Metric
	metric, control string // in words
	rate            bool
	invalid         bool // no comparison may be quoted
	level           int  // of intervals, in per cent
	nameSize        int  // maximum, in bytes
}

func newQuoter(r *result.Report, nameSize int) *quoter {
	row := result.ScorecardRow{Metric: *r.CompareMetric, Goal: r.Goal}
	q := &quoter{invalid: isInvalid(r.Conclusion), compared: row.Metric, metric: shorten(row.MetricInWords(), nameSize+len(row.Metric)), rate: result.IsRate(row.Metric), level: r.SignificanceLevel, nameSize: nameSize}
	if len(r.Variations) > 0 {
		q.control = shorten(r.Variations[0].Name, nameSize)
	}
	return q
}

// isInvalid reports whether the split of the visitors makes all comparisons invalid.
func isInvalid(c *result.Conclusion) bool { return c.Status == stats.StatusInvalid }

// quoteVariations returns the figures of variations, and adds the sentences that quote them to the answer.
func (a *reportAnswer) quoteVariations(q *quoter, of []result.VariationResults, prefix string) []variation {
	var all []variation
	for i := range of {
		v := variation{ID: of[i].ID, Name: shorten(of[i].Name, q.nameSize), Visitors: of[i].Visitors, Converted: &of[i].ConvertedVisitors}
		estimate := of[i].Metrics.EstimateOf(q.compared)
		for _, sentence := range q.quote(&v, &estimate, of[i].Comparison) {
			a.Sentences = append(a.Sentences, prefix+sentence)
		}
		all = append(all, v)
	}
	return all
}

// quote adds an estimate and its comparison with control to the figures of a variation. It returns the sentences that
// quote them.
func (q *quoter) quote(v *variation, e *result.Estimate, c *result.Comparison) []string {
	said := "not known"
	if v.Value = e.Value; e.Value != nil {
		said = result.FormatValue(*e.Value, e.Interval, q.rate)
	}
	said = fmt.Sprintf("%s: %s %s, %s visitors", v.Name, q.metric, said, result.FormatCount(v.Visitors))
	if v.Converted != nil {
		said += fmt.Sprintf(", %s converted", result.FormatCount(*v.Converted))
	}
	if c == nil || q.invalid {
		return []string{said + "."}
	}
	v.Improvement, v.Verdict = &c.Improvement, c.VerdictInWords()
	lift := "no lift: " + result.ExplainReason(c.Improvement.Reason)
	if x := c.Improvement; x.Value != nil {
		lift = "lift " + result.FormatLift(*x.Value, x.Interval)
		if x.Interval != nil {
			lift += " (" + q.describeInterval(x.Interval) + ")"
		}
	}
	if b := c.Bayesian; b != nil && b.ChanceToBeatControl != nil {
		v.Chance = b.ChanceToBeatControl
		lift += ", chance to beat control " + result.FormatChance(*v.Chance)
	}
	sentences := []string{said + ".", fmt.Sprintf("%s against %s on the data of today: %s; %s.", v.Name, q.control, lift, v.Verdict)}
	if s := c.Sequential; s != nil && s.Look != nil && s.Improvement != nil {
		v.Look = &look{*s.Look, s.Improvement, s.PValue}
		sentences = append(sentences, fmt.Sprintf("%s against %s at look %d: the lift has the %s.", v.Name, q.control, *s.Look, q.describeInterval(s.Improvement)))
	}
	return sentences
}

// describeInterval returns the interval of a lift with its level.
func (q *quoter) describeInterval(in *result.Bounds) string {
	return fmt.Sprintf("%d %% interval %s", q.level, result.RangeInWords(in, func(x float64) string { return result.FormatLift(x, in) }))
}

// shorten returns a text with at most the given size in JSON. It cuts between words, because a number that is cut is
// another number.
func shorten(text string, most int) string {
	size := func(text string) int { return len(text) + strings.Count(text, `"`) + strings.Count(text, `\`) }
	if text = printableText(text); size(text) <= most {
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
