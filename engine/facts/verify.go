package facts

import (
	"context"
	"fmt"
	"math/big"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine/fold"
	"lifthouse/schema"
)

// VerifyFacts compares the facts of all visitors with the folded events, and the cells with the sums of the visitors.
// It changes nothing. It calls progress with the share of the stored events that it has read. It reads events and facts
// once, both in the order of the visitors, so its memory does not grow with the number of visitors.
func (r *Refresher) VerifyFacts(ctx context.Context, progress func(share float64)) (found Scrubbed, err error) {
	r.deleting.RLock()
	defer r.deleting.RUnlock()
	c, err := r.newComparison(ctx, progress)
	if err != nil || c.at.Refresh == 0 {
		return found, err
	}
	if err := c.compareAll(ctx); err != nil {
		return found, err
	}
	found, err = r.recheckVisitors(ctx, c.differ)
	found.Visitors = c.visitors
	if err == nil {
		r.noteLost(ctx, r.published.allLost(), setOf(found.Lost)) // the others have all their events again
		found.Cells, err = r.recheckCells(ctx, c.sums.differingSubjects())
	}
	return found, err
}

// comparison compares the stored rows of all visitors with those that their events fold to.
type comparison struct {
	on       *server
	at       Position
	limit    int // of events of a visitor
	atOnce   int // visitors
	progress func(share float64)
	events   int64 // stored ones
	read     int64 // events so far

	// those that the events of the next visitors fold to, in order
	wanted []fold.FactRow
	after  schema.Visitor // the last visitor of wanted
	atEnd  bool           // no visitor follows it

	sums     *comparedSums
	visitors int // compared so far
	differ   []schema.Visitor
}

func (r *Refresher) newComparison(ctx context.Context, progress func(float64)) (*comparison, error) {
	c := &comparison{limit: r.MaxVisitorEvents, atOnce: r.VisitorsInOrder, progress: progress}
	at, err := r.changeFacts(ctx, func(context.Context) error {
		c.sums = newComparedSums(r.turn.cells.byDay)
		c.on = r.turn.on
		return nil
	})
	if err != nil {
		return nil, err
	}
	c.at = at
	_, c.events, err = c.on.readExtent(ctx)
	return c, err
}

// compareAll compares all visitors, and adds those that differ to c.differ. Facts that are stored while it reads may
// differ from the events.
func (c *comparison) compareAll(ctx context.Context) error {
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(reading))
	err := c.on.eachStored(ctx, anySection, c.on.sectionsOfAll(), c.sums.addStored,
		func(rows []fold.FactRow) error { return c.compareNext(ctx, rows) })
	if err != nil {
		return fmt.Errorf("compare the facts with the events: %w", err)
	}
	for { // visitors without facts
		rows, err := c.peek(ctx)
		if err != nil || len(rows) == 0 {
			return err
		}
		c.skip(rows)
	}
}

// compareNext compares the stored rows of the next visitor with facts.
func (c *comparison) compareNext(ctx context.Context, stored []fold.FactRow) error {
	c.sums.addVisitor(stored)
	v := visitorOfRow(&stored[0])
	for {
		rows, err := c.peek(ctx)
		if err != nil {
			return err
		}
		if len(rows) == 0 || v.Compare(visitorOfRow(&rows[0])) < 0 {
			c.visitors++
			c.differ = append(c.differ, v) // has no events
			return nil
		}
		if visitorOfRow(&rows[0]) == v {
			c.visitors++
			if !fold.AreSameRows(stored, rows) {
				c.differ = append(c.differ, v)
			}
			c.wanted = c.wanted[len(rows):]
			return nil
		}
		c.skip(rows)
	}
}

// skip notes that the next visitor with events has no facts.
func (c *comparison) skip(rows []fold.FactRow) {
	c.visitors++
	c.differ = append(c.differ, visitorOfRow(&rows[0]))
	c.wanted = c.wanted[len(rows):]
}

// peek returns the rows that the events of the next visitor fold to; empty: there is none. It reads the events of many
// visitors at once.
func (c *comparison) peek(ctx context.Context) ([]fold.FactRow, error) {
	for len(c.wanted) == 0 && !c.atEnd {
		visitors, err := c.on.readVisitorsAfter(ctx, c.after, c.atOnce)
		if err != nil {
			return nil, err
		}
		c.atEnd = len(visitors) < c.atOnce
		if len(visitors) == 0 {
			return nil, nil
		}
		last := visitors[len(visitors)-1]
		events, err := c.on.readEventsBetween(ctx, c.after, last, c.at.Through)
		if err != nil {
			return nil, err
		}
		c.after = last
		c.wanted = foldEvents(events, c.limit)
		c.read += int64(len(events))
		c.progress(float64(c.read) / float64(max(c.events, c.read)))
	}
	end := 0
	for end < len(c.wanted) && visitorOfRow(&c.wanted[end]) == visitorOfRow(&c.wanted[0]) {
		end++
	}
	return c.wanted[:end], nil
}

// recheckVisitors compares visitors again while no refresh changes their facts, and finds those who lost events.
func (r *Refresher) recheckVisitors(ctx context.Context, visitors []schema.Visitor) (found Scrubbed, err error) {
	for some := range slices.Chunk(visitors, visitorsAtOnce) {
		var of Scrubbed
		_, err := r.runExclusively(ctx, func(ctx context.Context) (err error) {
			of, err = r.scrubVisitors(ctx, some, false)
			return err
		})
		if err != nil {
			return found, err
		}
		found.addResult(of)
	}
	return found, nil
}

// storedRow is a stored row of a visitor or a cell; sign is -1 if it cancels another one.
type storedRow struct {
	fold.FactRow
	sign int8
	sums []*big.Int
}

func (r *storedRow) isCell() bool { return r.Grain == fold.OfAll || r.Grain == fold.OfDay }

const anySection = "section BETWEEN {first_section:UInt64} AND {last_section:UInt64}"

// sectionsOfAll returns the parameters of the condition anySection: all sections of a generation but the position.
func (s *server) sectionsOfAll() []any {
	return []any{
		clickhouse.Named("first_section", s.firstSection(fold.OfVisitor)),
		clickhouse.Named("last_section", s.firstSection(fold.OfDay)|hashMask),
	}
}

// eachStored calls eachVisitor for the stored rows of each visitor with a condition that are not cancelled, in order,
// and then eachCell for the cells, also cancelled ones. All are of one moment. Rows are valid until the next call.
func (s *server) eachStored(
	ctx context.Context, where string, params []any, eachCell func(*storedRow) error,
	eachVisitor func([]fold.FactRow) error,
) error {
	var own storedRows
	end := func() error {
		if rows := own.take(); len(rows) > 0 {
			return eachVisitor(rows)
		}
		return nil
	}
	err := schema.EachRow(ctx, s, s.render("stored.sql", where), func(row driver.Rows) error {
		var r storedRow
		if err := scanRow(row, &r.FactRow, &r.sign, &r.sums); err != nil {
			return err
		}
		if r.isCell() {
			return eachCell(&r)
		}
		if own.isOther(&r) {
			if err := end(); err != nil {
				return err
			}
		}
		own.add(&r)
		return nil
	}, params...)
	if err != nil {
		return err
	}
	return end()
}

// storedRows are the stored rows of a visitor.
type storedRows struct{ rows, cancelling []fold.FactRow }

// isOther reports whether a row is of another visitor than the rows.
func (s *storedRows) isOther(row *storedRow) bool {
	switch {
	case len(s.rows) > 0:
		return visitorOfRow(&s.rows[0]) != visitorOfRow(&row.FactRow)
	case len(s.cancelling) > 0:
		return visitorOfRow(&s.cancelling[0]) != visitorOfRow(&row.FactRow)
	}
	return false
}

func (s *storedRows) add(row *storedRow) {
	if row.sign < 0 {
		s.cancelling = append(s.cancelling, row.FactRow)
		return
	}
	s.rows = append(s.rows, row.FactRow)
}

// take returns the rows that are not cancelled, in order, and removes all. They are valid until the next call of add.
func (s *storedRows) take() (left []fold.FactRow) {
	left = s.rows
	if len(s.cancelling) > 0 {
		left = nil
		for _, c := range fold.AppendChanges(nil, s.cancelling, s.rows) {
			left = append(left, *c.FactRow)
		}
	}
	s.rows = s.rows[:0]
	s.cancelling = s.cancelling[:0]
	return left
}
