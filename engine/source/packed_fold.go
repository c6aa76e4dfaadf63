package source

import (
	"context"
	"iter"
	"math"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"lifthouse/engine/packed"
	"lifthouse/engine/query"
	"lifthouse/engine/visit"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
)

// packedFold counts the events in memory as sql/in_process.sql selects them.
type packedFold struct {
	*packed.Events
	widget      bool           // clicks, submits, completions, conversions and contacts count
	goal        int64          // that counts; 0: all
	least, most int64          // values of goal events that count
	filters     []packedFilter // of first views
	dimension   *packed.Column // of first views; nil: none
}

// packedFilter is a filter on an attribute of first views.
type packedFilter struct {
	*packed.Column
	passes []bool // by value
}

// packedFold returns how the events in memory are counted, or nil if the store keeps none.
func (x *Execution) packedFold(ctx context.Context) (*packedFold, error) {
	events, err := x.packedEvents(ctx)
	if err != nil || events == nil {
		return nil, err
	}
	p := &packedFold{Events: events, widget: x.Subject.Kind == schema.SubjectWidget, least: math.MinInt64, most: math.MaxInt64}
	if x.Filters.GoalValue != nil {
		p.least = leastUnits(x.Filters.GoalValue)
	}
	if o := x.Outliers; o != nil && !o.Open {
		p.least, p.most = max(p.least, o.Least), o.Most
	}
	if x.Dimension != "" {
		p.dimension = events.Column(string(x.Dimension))
	}
	for _, filter := range x.Filters.Lists {
		p.addFilter(filter.Attribute, func(value string) bool { return slices.Contains(filter.Values, value) })
	}
	for _, filter := range x.Filters.Texts {
		if !p.addText(filter) {
			return nil, nil
		}
	}
	return p, nil
}

func (p *packedFold) addFilter(attribute string, passes func(value string) bool) {
	f := packedFilter{Column: p.Column(attribute)}
	f.passes = make([]bool, len(f.Values))
	for i, value := range f.Values {
		f.passes[i] = passes(value)
	}
	p.filters = append(p.filters, f)
}

// addText adds a filter on a text. It returns false if the filter has wildcards and a
// value is not UTF-8: the store decides what * matches there.
func (p *packedFold) addText(filter query.TextFilter) bool {
	if !strings.Contains(filter.Pattern, "*") {
		p.addFilter(filter.Attribute, func(value string) bool { return value == filter.Pattern })
		return true
	}
	parts := strings.Split(filter.Pattern, "*")
	p.addFilter(filter.Attribute, func(value string) bool { return matchesParts(parts, value) })
	return !slices.ContainsFunc(p.filters[len(p.filters)-1].Values, func(value string) bool { return !utf8.ValidString(value) })
}

// matchesParts reports whether a text consists of the parts, with any text between them.
func matchesParts(parts []string, text string) bool {
	first, last := parts[0], parts[len(parts)-1]
	if len(text) < len(first)+len(last) || !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return true
}

// countPacked computes the totals of each visitor for a goal; 0: all goals. The caller
// must release the result.
func (x *Execution) countPacked(fold *packedFold, goal int64) *counting {
	if fold == nil { // could not be read
		return nil
	}
	about := *fold
	about.goal = goal
	f := x.counting()
	f.packed = &about
	f.visitors = slices.Grow(f.visitors, about.Visitors())[:about.Visitors()]
	goals := about.Goals()
	for i := range f.visitors {
		v := &f.visitors[i]
		words := about.Of(i)
		about.findFirstView(v, words, f.to)
		goals = about.countEvents(v, words, goals, f.to)
		if v.Exposed {
			v.shows = about.shows(i)
			if about.dimension != nil {
				v.dimension = about.dimension.Values[about.dimension.Index(i)]
			}
		}
	}
	return f
}

// findFirstView finds the first view of a visitor, and counts the views. Its event id is
// not set.
func (p *packedFold) findFirstView(v *visitorTotals, words []packed.Word, to int64) {
	for _, w := range words {
		at := w.At()
		if at < to {
			v.lastActive = max(v.lastActive, at)
		}
		if w.Kind() != visit.View {
			continue
		}
		if at < to {
			v.Events[visit.View]++
		}
		variation := p.Variation(w)
		switch {
		case !v.Exposed:
			v.First, v.Exposed = visit.Event{At: at, Variation: variation, Kind: visit.View}, true
		case variation != v.First.Variation:
			v.MultiExposed = true
			if at == v.First.At && variation < v.First.Variation {
				v.First.Variation = variation
			}
		}
	}
}

// countEvents adds up the other events of a visitor. It returns the goal events of the
// following visitors.
func (p *packedFold) countEvents(v *visitorTotals, words []packed.Word, goals []packed.GoalEvent, to int64) []packed.GoalEvent {
	for _, w := range words {
		switch kind := w.Kind(); {
		case kind == visit.Goal:
			if g := &goals[0]; v.Exposed && w.At() >= v.First.At && w.At() < to && p.countsGoal(g) {
				v.Goals.Events++
				for i, amount := range g.Amounts {
					v.Goals.Amounts[i] += amount
				}
			}
			goals = goals[1:]
		case kind > visit.View && p.widget && v.Exposed && w.At() >= v.First.At && w.At() < to:
			v.Events[kind]++
		}
	}
	return goals
}

// countsGoal reports whether a goal event counts by its goal and its value.
func (p *packedFold) countsGoal(g *packed.GoalEvent) bool {
	return (p.goal == 0 || g.Goal == p.goal) && g.Amounts[0] >= p.least && g.Amounts[0] <= p.most
}

// shows reports whether the first view of a visitor passes the filters.
func (p *packedFold) shows(visitor int) bool {
	for i := range p.filters {
		if f := &p.filters[i]; !f.passes[f.Index(visitor)] {
			return false
		}
	}
	return true
}

// counted returns the counted events of the visitors in the series.
func (p *packedFold) counted(f *counting) iter.Seq2[int, *visit.Event] {
	return func(yield func(int, *visit.Event) bool) {
		goals := p.Goals()
		var e visit.Event // one for all, because each would be an allocation
		for i := range f.visitors {
			v := &f.visitors[i]
			in := f.inSeries(v)
			for _, w := range p.Of(i) {
				e = visit.Event{At: w.At(), Kind: w.Kind()}
				counts := e.Kind == visit.View || p.widget
				if e.Kind == visit.Goal {
					e.Amounts, counts = goals[0].Amounts, p.countsGoal(&goals[0])
					goals = goals[1:]
				}
				if counts && in && f.counts(v, &e) && !yield(i, &e) {
					return
				}
			}
		}
	}
}

// outliers returns the bounds of the z-score, as sql/outliers.sql counts them.
func (x *Execution) outliers(fold *packedFold) *visit.Outliers {
	f := x.countPacked(fold, x.CountedGoal())
	defer f.release()
	declared := x.variationIDs()
	var n int64
	var s, ss, square big.Int
	for visitor, e := range f.counted() {
		v := &f.visitors[visitor]
		_, compared := slices.BinarySearch(declared, v.First.Variation)
		if e.Kind != visit.Goal || !compared || v.MultiExposed && x.MultipleExposures != catalogue.FirstVariation {
			continue
		}
		value := big.NewInt(e.Amounts[0])
		n++
		s.Add(&s, value)
		ss.Add(&ss, square.Mul(value, value))
	}
	return visit.NewOutliers(n, &s, &ss, x.Filters.ZScore)
}
