package facts

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lifthouse/engine/fold"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/source"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/sync/errgroup"
)

// counting reads the sums of an answer on one server.
type counting struct {
	of        answer
	on        *state
	store     source.Store
	selection *selection
	places    places
	asked     asked
}

// key is the key of sums.
type key struct {
	goal   int64 // only of several goals
	bucket int64
	rank   uint16 // of the value of the dimension, from 1; 0: another value, or no dimension
	// crossed is the bucket of a multi-exposed visitor's first view of another variation, if the plan reads crossings.
	// In a report without a series, it is crossedLater, or 0.
	crossed int64
	split   string // value of a split
	moments.GroupKey
}

// crossedLater marks multi-exposed visitors who saw another variation after the end of the window only.
const crossedLater = -1

// counts are sums by key.
type counts map[key]moments.Moments

func (c counts) addMoments(at key, m *moments.Moments) { c[at] = c[at].Merge(*m) }

// addCounts adds other sums.
func (c counts) addCounts(others counts) {
	for at, m := range others {
		c.addMoments(at, &m)
	}
}

// factSums are the sums that a report adds.
type factSums struct {
	visitors bool    // of visitors
	goals    []int64 // of the events of these goals; 0: of all goals
	pair     bool    // of the quantities of the metric
}

// newCountings returns a counting for each server. tops has the values with a rank of each attribute of the dimension.
func (x answer) newCountings(tops [][]string) []*counting {
	x = x.untilSettled()
	all := make([]*counting, len(x.states))
	for i := range x.states {
		on := &x.states[i]
		c := &counting{
			of: x, on: on, selection: newSelection(&x, on),
			store: source.Store{Conn: on.Conn, Limits: x.Store.Limits, Observe: x.Store.Observe},
		}
		c.places = places{
			variations: storedVariations(on.all), dimensions: c.selection.dimensions, tops: tops,
		}
		c.asked = newAsked(&c.of, on)
		all[i] = c
	}
	return all
}

// untilSettled returns the answer up to the last day (UTC) whose orders have settled, if results wait for that without
// a conversion window.
func (x answer) untilSettled() answer {
	if w := x.ConversionWindow; w.SettlesOnly() && x.Timing == plan.WhenMature {
		until := x.stored.SettledAfter(w.Settle)
		if to := x.Filters.To; to.IsZero() || until.Before(to) {
			x.Filters.To = schema.LaterTime(until, plan.OpenFrom)
		}
	}
	return x
}

// storedVariations returns the variations whose events count, and an empty one: transform needs a value.
func storedVariations(all fold.Cells) []string {
	variations := []string{""}
	for at := range all {
		if at.Goal == 0 && fold.IsCounted(at.Variation) {
			variations = append(variations, at.Variation)
		}
	}
	slices.Sort(variations)
	return variations
}

// isCapped reports whether total values of visitors are limited. The statement of a metric limits it itself.
func (x *answer) isCapped() bool { return x.limit != nil && x.limit.Limit > 0 && x.Expression == nil }

// part reads a part of the sums of a report.
type part func(context.Context) (counts, error)

// readParts reads parts at the same time, and returns their sums.
func readParts(ctx context.Context, parts []part) (counts, error) {
	found := make([]counts, len(parts))
	reading, ctx := errgroup.WithContext(ctx)
	for i, read := range parts {
		reading.Go(func() (err error) {
			found[i], err = read(ctx)
			return err
		})
	}
	if err := reading.Wait(); err != nil {
		return nil, err
	}
	all := counts{}
	for _, some := range found {
		all.addCounts(some)
	}
	return all, nil
}

// runs returns the part that a statement reads.
func (c *counting) runs(s *statement) part {
	return func(ctx context.Context) (counts, error) { return c.run(ctx, s) }
}

// run returns the sums that a statement reads.
func (c *counting) run(ctx context.Context, s *statement) (counts, error) {
	found := counts{}
	err := c.store.EachRow(ctx, s.text(), s.params, func(row driver.Rows) error {
		var at rowKey
		m := moments.NoMoments()
		var to []any
		for _, key := range s.keys {
			to = append(to, key.to(&at))
		}
		for _, sum := range s.sums {
			to = append(to, sum.to(&m))
		}
		if err := row.Scan(to...); err != nil {
			return err
		}
		var variation string
		at.goal, variation, at.rank = s.places.groupAt(at.place)
		at.Period = int(at.period)
		return found.addVariation(at.key, variation, &m)
	})
	return found, err
}

// addVariation adds the sums of a variation as in rows, if its events count.
func (c counts) addVariation(at key, variation string, m *moments.Moments) (err error) {
	if !fold.IsCounted(variation) {
		return nil
	}
	id, isMultiExposed := strings.CutSuffix(variation, fold.MultiExposed)
	at.VariationID, err = strconv.ParseInt(id, 10, 64)
	if err != nil {
		return fmt.Errorf("facts: variation %q: %w", variation, err)
	}
	at.MultiExposed = isMultiExposed && at.crossed != crossedLater
	if at.crossed == crossedLater {
		at.crossed = 0
	}
	c.addMoments(at, m)
	return nil
}

// readTotals reads the sums of a report without its series.
func (c *counting) readTotals(ctx context.Context, wanted factSums) (counts, error) {
	from := c.asked.ofTotals()
	ofCells := factSums{visitors: wanted.visitors && isOfCells(from.visitors)}
	if isOfCells(from.goals) {
		ofCells.goals = wanted.goals
	}
	var parts []part
	switch {
	case !ofCells.visitors && len(ofCells.goals) == 0:
	case from.visitors == ofDays:
		parts = append(parts, c.runsDays(ofCells, false))
	default:
		parts = append(parts, func(context.Context) (counts, error) { return c.sumCells(ofCells) })
	}
	if wanted.visitors {
		parts = append(parts, c.visitorParts(from.visitors)...)
	}
	if len(wanted.goals) > 0 {
		parts = append(parts, c.goalParts(from)...)
	}
	if wanted.pair {
		parts = append(parts, c.runs(c.pairStatement(nil)))
	}
	return readParts(ctx, parts)
}

func isOfCells(from factSource) bool { return from == ofCells || from == ofDays }

// visitorParts returns the parts of the sums of visitors that are not of cells. If all visitors are in the report, a
// part of its own counts those of the recent days: comparing each first day takes a quarter of the statement.
func (c *counting) visitorParts(from factSource) []part {
	switch from {
	case ofCells:
		return []part{c.countRecent}
	case ofDays:
		parts := []part{c.countRecent}
		if !c.of.Filters.From.IsZero() {
			parts = append(parts, c.countEarlier)
		}
		return parts
	case ofComplement:
		return []part{c.readComplement, c.countRecent}
	default:
		if c.asked.dividesRecent() {
			return []part{c.runs(c.visitorStatement(true))}
		}
		return []part{c.runs(c.visitorStatement(false)), c.countRecent}
	}
}

// readComplement reads the sums of the visitors whose conversion window has not ended, and what they leave of all.
func (c *counting) readComplement(ctx context.Context) (counts, error) {
	found, err := c.sumCells(factSums{visitors: true})
	if err != nil {
		return nil, err
	}
	immature, err := c.run(ctx, c.immatureStatement())
	for at, m := range immature {
		found.addMoments(at, &m)
		at.Immature = false
		found[at] = found[at].Subtract(m)
	}
	return found, err
}

// goalParts returns the parts of the sums of goal events that are not of cells.
func (c *counting) goalParts(from factSources) []part {
	switch {
	case from.ofCap:
		return []part{c.runs(c.cappedStatement())}
	case from.goals == ofRows:
		return []part{c.runs(c.goalStatement(nil))}
	case from.goals == byVisitor:
		return []part{c.runs(c.convertedStatement())}
	default:
		return nil
	}
}

// readSteps reads what each bucket of the series adds to some sums.
func (c *counting) readSteps(ctx context.Context, wanted factSums) (counts, error) {
	from := c.asked.ofSeries()
	var parts []part
	hasDays := from.goals == ofDays || from.goals == ofCrossers
	if hasDays {
		parts = append(parts, c.runsDays(wanted, true))
	}
	if wanted.visitors {
		parts = append(parts, c.visitorSteps(from.visitors)...)
	}
	if len(wanted.goals) > 0 {
		parts = append(parts, c.goalSteps(from.goals)...)
	}
	if wanted.pair {
		parts = append(parts, c.runs(c.pairSteps()))
	}
	return readParts(ctx, parts)
}

// visitorSteps returns the parts of the series of visitors that are not of cells by day.
func (c *counting) visitorSteps(from factSource) []part {
	switch from {
	case ofDays:
		return nil
	case ofCrossers:
		return []part{c.runs(c.actionStatement(ofMultiExposed))}
	case ofActions:
		return []part{c.runs(c.actionStatement())}
	default:
		return c.visitorParts(from)
	}
}

// goalSteps returns the parts of the series of goal events that are not of cells by day.
func (c *counting) goalSteps(from factSource) []part {
	switch from {
	case ofDays:
		return nil
	case ofCrossers:
		return []part{c.runs(c.goalStatement(c.goalBucket(), ofMultiExposed))}
	case ofNumbered:
		return []part{c.runs(c.numberedStatement())}
	default:
		return []part{c.runs(c.goalStatement(c.goalBucket()))}
	}
}

// ofMultiExposed is the condition of the rows of multi-exposed visitors.
const ofMultiExposed = "multi_exposed_at != toDateTime64(0, 3)"

// goalBucket returns the bucket of a goal event. It changes the series at its own time, at that of the first view, or
// when the visitor is mature.
func (c *counting) goalBucket() []keyColumn {
	at := factTime
	if c.of.ConversionWindow.IsSet() {
		switch c.of.Timing {
		case plan.OnEvent:
		case plan.OnFirstView:
			at = firstTime
		case plan.ByAge:
			at = "toInt64(since_ms)"
		case plan.WhenMature:
			at = firstTime + " + {maturity_ms:Int64} - 1"
		}
	}
	return []keyColumn{bucketKey(at)}
}
