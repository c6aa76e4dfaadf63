package rollup

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/visit"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// maxAttributes is the maximum number of attributes of a cube.
const maxAttributes = 2

// cell is the key of a row of the table rollups.
type cell struct {
	place
	cube         int  // index in cubes
	frequent     bool // whether the row is in the frequent cube
	variation    int64
	multiExposed bool
	attributes   [maxAttributes]string // values of the attributes of the cube
}

// cells has the changes of sums by cell.
type cells map[cell]*sums

// newAttributeIndexes returns, for each cube, the indexes of its attributes in
// attributeColumns.
func newAttributeIndexes() [][]int {
	at := make([][]int, len(cubes))
	for i := range cubes {
		for _, column := range cubes[i].by {
			at[i] = append(at[i], slices.Index(attributeColumns, column))
		}
	}
	return at
}

var attributeIndexes = newAttributeIndexes()

// name returns the name of the cube.
func (c *cell) name() string {
	if c.frequent {
		return cubes[c.cube].frequentName()
	}
	return cubes[c.cube].name
}

// add adds the sums of a visitor, or subtracts them if sign is -1.
func (c cells) add(p *visitorTotals, sign int64, values frequent) {
	if p == nil {
		return
	}
	for i := range p.parts {
		part := &p.parts[i]
		for f := range cubes {
			cube := &cubes[f]
			bothDays := cube.firstDay && cube.day
			if part.kind == visit.NoKind && !bothDays || cube.rank && part.kind != visit.View {
				continue
			}
			at := cell{place: part.place, cube: f, variation: p.First.Variation, multiExposed: p.MultiExposed}
			if !cube.firstDay {
				at.firstDay = 0
			}
			if !cube.day {
				at.day = 0
			}
			for k, attribute := range attributeIndexes[f] {
				at.attributes[k] = p.attributes[attribute]
			}
			at.frequent = cube.frequent && values.has(cube, at.attributes[0])
			if cube.rank {
				at.variation, at.multiExposed, at.goal = 0, false, int64(schema.Hash(at.attributes[0])) //nolint:gosec // its bits
			}
			if c[at] == nil {
				c[at] = new(sums)
			}
			c[at].add(&part.sums, sign)
		}
	}
}

// update subtracts the old amounts of a visitor and adds the new ones.
func (c cells) update(events []eventRow, sharesSince int64, values frequent) error {
	var amounts float64
	for i := range events {
		for _, amount := range events[i].Amounts {
			amounts += math.Abs(float64(amount))
		}
	}
	if amounts > maxAmount {
		return errTooLarge
	}
	c.add(totalsOf(earlier(events), sharesSince), -1, values)
	c.add(totalsOf(events, sharesSince), 1, values)
	return nil
}

// earlier returns the events before the last step.
func earlier(events []eventRow) []eventRow {
	return slices.DeleteFunc(slices.Clone(events), func(e eventRow) bool { return e.fresh })
}

// errTooLarge reports a visitor whose squared amounts overflow.
var errTooLarge = errors.New("no rollup: the squares of the amounts overflow")

const insertRollups = `INSERT INTO rollups (bucket, generation, website_id, subject, subject_id, experiment_id, is_cell, cube_name, event, goal_id,
	device, country, channel, browser, os, visitor_type, referrer, utm_source, utm_medium, utm_campaign, city,
	variation_id, multi_exposed, first_day, day, visitors, since_shares, events, events_squares,
	value, value_times_goals, profit, extra_value, signs, state)`

// insert inserts the changed rows and the new state as one block. complete is
// whether it is all of a new generation.
func (c cells) insert(ctx context.Context, conn driver.Conn, of plan.Subject, state *State, complete bool) error {
	order := make([]cell, 0, len(c))
	for at, s := range c {
		if !s.isZero() {
			order = append(order, at)
		}
	}
	batch, err := conn.PrepareBatch(ctx, insertRollups)
	if err != nil {
		return fmt.Errorf("insert rollups: %w", err)
	}
	defer func() { _ = batch.Close() }()
	state.Inserts++
	states := column(order, func(*cell) map[string]int64 { return nil }, state.encoded(complete))
	for i, column := range append(slices.Concat(c.keyColumns(order, of, state), c.sumColumns(order)), states) {
		if err := batch.Column(i).Append(column); err != nil {
			return fmt.Errorf("insert rollups: column %d: %w", i, err)
		}
	}
	if err := batch.Send(); err != nil {
		return fmt.Errorf("insert rollups: %w", err)
	}
	return nil
}

// column returns a value for each cell, followed by the value of the state.
func column[T any](order []cell, of func(*cell) T, state T) []T {
	values := make([]T, 0, len(order)+1)
	for i := range order {
		values = append(values, of(&order[i]))
	}
	return append(values, state)
}

func same[T any](order []cell, value T) []T {
	return column(order, func(*cell) T { return value }, value)
}

func (c cells) keyColumns(order []cell, of plan.Subject, state *State) []any {
	columns := []any{
		same(order, state.Generation.Bucket), same(order, state.Generation.Number),
		same(order, of.WebsiteID), same(order, string(of.Kind)), same(order, of.ID), same(order, of.ExperimentID),
		column(order, func(*cell) uint8 { return 1 }, 0),
		column(order, (*cell).name, stateName),
		column(order, func(c *cell) int8 { return int8(c.kind) }, int8(visit.NoKind)),
		column(order, func(c *cell) int64 { return c.goal }, 0),
	}
	for attribute := range attributeColumns {
		columns = append(columns, column(order, func(c *cell) string {
			if k := slices.Index(attributeIndexes[c.cube], attribute); k >= 0 {
				return c.attributes[k]
			}
			return ""
		}, ""))
	}
	return append(columns,
		column(order, func(c *cell) int64 { return c.variation }, 0),
		column(order, func(c *cell) uint8 { return flag(c.multiExposed) }, 0),
		column(order, func(c *cell) time.Time { return dateOf(c.firstDay) }, dateOf(0)),
		column(order, func(c *cell) time.Time { return dateOf(c.day) }, dateOf(0)))
}

func dateOf(day int32) time.Time { return time.UnixMilli(0).UTC().AddDate(0, 0, int(day)) }

func (c cells) sumColumns(order []cell) []any {
	number := func(of func(*sums) int64) any {
		return column(order, func(at *cell) int64 { return of(c[*at]) }, 0)
	}
	large := func(of func(*sums) *big.Int) any {
		return column(order, func(at *cell) *big.Int { return of(c[*at]) }, new(big.Int))
	}
	amounts := func(i int) any {
		return large(func(s *sums) *big.Int { return packAmounts(&s.Amounts[i].Sum, &s.Amounts[i].Squares) })
	}
	return []any{
		column(order, func(at *cell) int64 { return c[*at].Visitors }, 1),
		number(func(s *sums) int64 { return s.sinceShares }),
		number(func(s *sums) int64 { return s.Events }),
		large(func(s *sums) *big.Int { return &s.EventsSquares }),
		amounts(0),
		large(func(s *sums) *big.Int { return &s.ValueTimesEvents }),
		amounts(1), amounts(2),
		large(func(s *sums) *big.Int { return packSigns(s.signs()) }),
	}
}

func (s *sums) signs() (counts [6]int64) {
	for i := range s.Amounts {
		counts[2*i], counts[2*i+1] = s.Amounts[i].Nonzero, s.Amounts[i].Negative
	}
	return counts
}

func flag(is bool) uint8 {
	if is {
		return 1
	}
	return 0
}
