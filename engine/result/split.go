package result

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/wording"
	"lifthouse/stats"
)

// SplitCause says where a sample ratio mismatch comes from.
type SplitCause struct {
	Text      string        `json:"text"`
	Without   *SplitRegion  `json:"without"`   // the visitors who carry the mismatch; null: none stand out
	Second    *SplitRegion  `json:"second"`    // of the others, if these do not match; null: none stand out
	Parts     []SplitPart   `json:"parts"`     // the worst first
	LostViews []LostOfSplit `json:"lostViews"` // goal events of visitors without a view

	all       *stats.SampleRatioCheck
	lostGoals []string // in words, by variation
}

// SplitRegion are the visitors whose split is furthest from the shares, and the split of all others.
type SplitRegion struct {
	Attribute string   `json:"attribute"`      // as in SplitPart
	Value     string   `json:"value"`          // empty: all visitors
	From      string   `json:"from,omitempty"` // day (UTC) of the first view; empty: from the start
	Visitors  int64    `json:"visitors"`
	PValue    *float64 `json:"pValue"` // of the others
	// the others and their parts match, and are enough to show half of the deviation
	Matches bool `json:"matches"`

	mismatch bool // the others do not match
}

// hasDay reports whether a day is in a region that is made of days: one day, or all from a day on.
func (r *SplitRegion) hasDay(date string) bool {
	if r.From == "" {
		return date == r.Value
	}
	return date >= r.From
}

// SplitPart has the split of the visitors of a day, or with one value of an attribute.
type SplitPart struct {
	Attribute string    `json:"attribute"` // day (of the first view, UTC) or an attribute of the first view
	Value     string    `json:"value"`
	Visitors  int64     `json:"visitors"`
	Observed  []int64   `json:"observed"` // as in the check of the sample ratio
	Expected  []float64 `json:"expected"`
	PValue    *float64  `json:"pValue"`
	Mismatch  bool      `json:"mismatch"`
}

// LostOfSplit are the goal events that carry a variation and whose visitors have no view.
type LostOfSplit struct {
	VariationID int64 `json:"variationId"`
	moments.LostViews
}

// byDay is the attribute of parts by the day of the first view.
const byDay = "day"

// SplitAttributes are the attributes of the first view whose split is examined, beside its day: what decides which code
// a visitor runs, and where the visitor comes from.
var SplitAttributes = []query.Dimension{query.ByDevice, "browser", query.ByChannel, query.ByCountry, "utmSource"}

// split has numbers of visitors by first variation and period of equal shares.
type split map[[2]int64]int64

func (s split) add(others split, sign int64) {
	for at, n := range others {
		s[at] += sign * n
	}
}

// check tests the split of the visitors.
func (s split) check(p *plan.Plan) *stats.SampleRatioCheck {
	var periods []stats.SharePeriod
	for i := range p.SharePeriods {
		periods = append(periods,
			p.ObservedSplit(i, func(variation int64) int64 { return s[[2]int64{variation, int64(i)}] }))
	}
	check := stats.SampleRatioMismatch(periods)
	first := max(len(check.Observed)-len(p.Variations), 0) // variation 0 may not be in the report
	check.Observed = append([]int64{}, check.Observed[first:]...)
	check.Expected = append([]float64{}, check.Expected[first:]...)
	return &check
}

// visitors returns the number of visitors of the declared variations.
func (s split) visitors(p *plan.Plan) (n int64) {
	for at, visitors := range s {
		if p.IndexOfVariation(at[0]) >= 0 {
			n += visitors
		}
	}
	return n
}

// splitOfValue has the visitors with one value of an attribute, by day.
type splitOfValue struct {
	attribute, value string
	isOthers         bool
	days             map[int64]split
	whole            split
	check            *stats.SampleRatioCheck
	parts            int // of its attribute
}

// worstFirst orders parts by the evidence against their shares.
func worstFirst(a, b *splitOfValue) int {
	return cmp.Or(cmp.Compare(b.check.LogFactor, a.check.LogFactor), cmp.Compare(a.value, b.value))
}

func newSplitOfValue(attribute, value string) *splitOfValue {
	return &splitOfValue{attribute: attribute, value: value, days: map[int64]split{}, whole: split{}}
}

func (v *splitOfValue) add(day int64, counts split) {
	if v.days[day] == nil {
		v.days[day] = split{}
	}
	v.days[day].add(counts, 1)
	v.whole.add(counts, 1)
}

// NewSplitCause examines the split by day and by each attribute. by has the visitors by attribute and day, see
// facts.ReadFirstViews. lost has the goal events of visitors without a view.
//
// A part is a mismatch if its always-valid p-value is below .001 / (attributes · parts of its attribute), so at each
// reading the probability that a fair part is one is at most .001. Attributes with a single part are left out.
//
// Without is the region with the largest Bayes factor against its shares: a day, all visitors from a day on, or those
// with the worst value of an attribute, also from a day on. If the others match, this is the evidence that exactly the
// region is wrong. It must exceed the evidence that all visitors are wrong times the number of regions.
func NewSplitCause(
	p *plan.Plan, by map[query.Dimension][]moments.Step, lost map[int64]moments.LostViews,
) *SplitCause {
	whole, groups := divideSplit(p, by)
	cause := &SplitCause{Parts: worstParts(p, groups), LostViews: []LostOfSplit{}, all: whole.check}
	for _, v := range p.Variations {
		if n := lost[v.ID]; n.Goals > 0 {
			cause.LostViews = append(cause.LostViews, LostOfSplit{v.ID, n})
			cause.lostGoals = append(cause.lostGoals, v.Name+" "+wording.FormatCount(n.Goals))
		}
	}
	cause.Without = findRegion(p, whole, groups)
	cause.setText()
	return cause
}

// divideSplit returns the split of all visitors, and the parts of each attribute that has several, among them the day
// of the first view: the worst first.
func divideSplit(
	p *plan.Plan, by map[query.Dimension][]moments.Step,
) (whole *splitOfValue, groups [][]*splitOfValue) {
	whole = newSplitOfValue("", "")
	byDate := map[string]*splitOfValue{}
	divided := []map[string]*splitOfValue{byDate}
	for i, attribute := range SplitAttributes {
		byValue := map[string]*splitOfValue{}
		divided = append(divided, byValue)
		for _, step := range by[attribute] {
			if step.ExposedBefore {
				continue
			}
			counts := split{{step.VariationID, int64(step.Period)}: step.Visitors}
			value := ShownValue(step.Dimension)
			if step.Others {
				value = otherValues
			}
			part := addToPart(byValue, string(attribute), value, step.Bucket, counts)
			part.isOthers = step.Others
			if i == 0 { // each attribute has all visitors
				whole.add(step.Bucket, counts)
				addToPart(byDate, byDay, dateOf(step.Bucket), step.Bucket, counts)
			}
		}
	}
	for _, parts := range divided {
		group := slices.Collect(maps.Values(parts))
		for _, v := range group {
			v.check = v.whole.check(p)
			v.parts = len(group)
		}
		slices.SortFunc(group, worstFirst)
		if len(group) > 1 {
			groups = append(groups, group)
		}
	}
	whole.check = whole.whole.check(p)
	return whole, groups
}

// addToPart adds visitors of a day to the part of their value, and returns the part.
func addToPart(
	parts map[string]*splitOfValue, attribute, value string, day int64, counts split,
) *splitOfValue {
	if parts[value] == nil {
		parts[value] = newSplitOfValue(attribute, value)
	}
	parts[value].add(day, counts)
	return parts[value]
}

// worstParts returns the parts with the most evidence against their shares, at most five of an attribute.
func worstParts(p *plan.Plan, groups [][]*splitOfValue) []SplitPart {
	const most = 5
	var worst []*splitOfValue
	for _, group := range groups {
		worst = append(worst, group[:min(len(group), most)]...)
	}
	slices.SortStableFunc(worst, worstFirst)
	parts := []SplitPart{}
	for _, v := range worst {
		c := v.check
		parts = append(parts, SplitPart{
			Attribute: v.attribute, Value: v.value, Visitors: v.whole.visitors(p),
			Observed: c.Observed, Expected: c.Expected, PValue: c.PValue,
			Mismatch: c.PValue != nil && *c.PValue < stats.MismatchAlpha/float64(len(groups)*v.parts),
		})
	}
	return parts
}

// RestAfter returns an attribute and its values without the one of the region that carries the mismatch; empty: the
// region is made of days, or there is none. by is as in NewSplitCause.
func (c *SplitCause) RestAfter(by map[query.Dimension][]moments.Step) (attribute string, values []string) {
	r := c.Without
	if r == nil || r.Attribute == byDay {
		return "", nil
	}
	for _, step := range by[query.Dimension(r.Attribute)] {
		isOther := !step.Others && ShownValue(step.Dimension) != r.Value
		if isOther && !slices.Contains(values, step.Dimension) {
			values = append(values, step.Dimension)
		}
	}
	return r.Attribute, values
}

// AddSecond examines the visitors who are left without the region that carries the mismatch. If they, or a part of
// them, do not match either, Second is the region of them that carries this. rest has them in the form of
// NewSplitCause. Where the region is made of days, it has all visitors.
func (c *SplitCause) AddSecond(p *plan.Plan, rest map[query.Dimension][]moments.Step) {
	r := c.Without
	if r == nil {
		return
	}
	if r.Attribute == byDay {
		rest = maps.Clone(rest)
		for attribute, steps := range rest {
			rest[attribute] = slices.DeleteFunc(slices.Clone(steps), func(step moments.Step) bool {
				return r.hasDay(dateOf(step.Bucket))
			})
		}
	}
	others := NewSplitCause(p, rest, nil)
	worst := slices.IndexFunc(others.Parts, func(part SplitPart) bool { return part.Mismatch })
	if !r.mismatch && worst < 0 {
		return
	}
	r.Matches = false
	c.Second = others.Without
	if c.Second == nil && worst >= 0 {
		part := others.Parts[worst]
		c.Second = &SplitRegion{Attribute: part.Attribute, Value: part.Value, Visitors: part.Visitors}
	}
	c.setText()
}

// findRegion returns the region that carries the mismatch, see NewSplitCause.
func findRegion(p *plan.Plan, whole *splitOfValue, groups [][]*splitOfValue) *SplitRegion {
	var best *SplitRegion
	var of split
	most := math.Inf(-1)
	regions := 0
	consider := func(attribute, value, from string, counts split) {
		regions++
		if factor := counts.check(p).LogFactor; factor > most {
			most = factor
			best = &SplitRegion{Attribute: attribute, Value: value, From: from}
			of = maps.Clone(counts)
		}
	}
	fromEachDay := func(v *splitOfValue) {
		days := slices.Sorted(maps.Keys(v.days))
		counts := split{}
		for i, day := range slices.Backward(days) {
			counts.add(v.days[day], 1)
			switch {
			case i > 0:
				consider(cmp.Or(v.attribute, byDay), v.value, dateOf(day), counts)
			case v.attribute != "":
				consider(v.attribute, v.value, "", counts)
			}
		}
	}
	fromEachDay(whole)
	for _, group := range groups {
		if group[0].attribute == byDay {
			consider(byDay, group[0].value, "", group[0].whole)
			regions += len(group) - 1
			continue
		}
		if i := slices.IndexFunc(group, func(v *splitOfValue) bool { return !v.isOthers }); i >= 0 {
			fromEachDay(group[i])
			regions += len(group) - 1
		}
	}
	if best == nil || most <= whole.check.LogFactor+math.Log(float64(regions)) {
		return nil
	}
	others := maps.Clone(whole.whole)
	others.add(of, -1)
	check := others.check(p)
	best.Visitors = of.visitors(p)
	best.PValue = check.PValue
	best.mismatch = check.Mismatch
	best.Matches = !check.Mismatch && others.couldShow(p, of)
	return best
}

// couldShow reports whether half of the deviation of other visitors would be a mismatch of these ones.
func (s split) couldShow(p *plan.Plan, deviating split) bool {
	var periods []stats.SharePeriod
	for i := range p.SharePeriods {
		of := func(counts split) stats.SharePeriod {
			return p.ObservedSplit(i, func(variation int64) int64 { return counts[[2]int64{variation, int64(i)}] })
		}
		period, other := of(s), of(deviating)
		shares := period.Split.ExpectedShares()
		if shares == nil {
			return false
		}
		n, visitors := sumOf(slices.Values(period.Observed)), sumOf(slices.Values(other.Observed))
		for v, share := range shares {
			if visitors > 0 {
				share = (share + float64(other.Observed[v])/float64(visitors)) / 2
			}
			period.Observed[v] = int64(math.Round(share * float64(n)))
		}
		periods = append(periods, period)
	}
	return stats.SampleRatioMismatch(periods).Mismatch
}

// dateOf returns the date of a day, counted since 1970.
func dateOf(day int64) string {
	return time.Unix(0, 0).UTC().AddDate(0, 0, int(day)).Format(time.DateOnly)
}

// setText says which visitors carry the mismatch, and in which variation views may be lost.
func (c *SplitCause) setText() {
	switch r := c.Without; {
	case r != nil && c.Second != nil:
		c.Text = fmt.Sprintf("No part alone explains the mismatch. The %s are furthest from the shares; of the "+
			"others, the %s. ", r.InWords(), c.Second.InWords()) + c.Second.othersInWords("Without both, the split")
	case r != nil && r.mismatch:
		c.Text = fmt.Sprintf("The %s are furthest from the shares, but do not explain the mismatch alone. ",
			r.InWords()) + r.othersInWords("Without them, the split")
	case r != nil:
		c.Text = r.othersInWords(fmt.Sprintf("Without the %s, the split", r.InWords()))
	case !c.all.Mismatch && c.all.PValue != nil:
		c.Text = fmt.Sprintf("The visitors so far match the shares: %s. The mismatch, of all visitors or of a "+
			"segment, was found at the end of an earlier day.", wording.PValueInWords(*c.all.PValue))
	default:
		c.Text = "No day, device, browser, channel, country or UTM source stands out: the split is wrong throughout."
	}
	if len(c.lostGoals) > 0 {
		c.Text += " Goals of visitors without a view, by the variation that they carry: " +
			strings.Join(c.lostGoals, ", ") + "."
	}
}

// othersInWords says whether the split of the others matches, after a text that ends with the split.
func (r *SplitRegion) othersInWords(text string) string {
	if r.PValue == nil {
		return text + " is not known."
	}
	p := wording.PValueInWords(*r.PValue)
	switch {
	case r.Matches:
		return text + " matches the shares: " + p + "."
	case r.mismatch:
		return text + " does not match either: " + p + "."
	}
	return text + " is not known to match: " + p + ", but there are too few others to show half of the deviation."
}

// InWords describes the visitors: 1,234 visitors with the browser safari, first exposed from 2025-11-19 on.
func (r *SplitRegion) InWords() string {
	text := wording.FormatCount(r.Visitors) + " visitors"
	if r.Attribute != byDay {
		text += fmt.Sprintf(" with the %s %s", strings.Replace(r.Attribute, "utmSource", "UTM source", 1), r.Value)
		if r.From != "" {
			text += ","
		}
	} else if r.From == "" {
		return text + " first exposed on " + r.Value
	}
	if r.From != "" {
		text += " first exposed from " + r.From + " on"
	}
	return text
}
