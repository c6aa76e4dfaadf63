package rollup

import (
	"cmp"
	"math/big"
	"slices"

	"lifthouse/engine/source"
	"lifthouse/engine/visit"
	"lifthouse/schema"
	"lifthouse/stats"
)

// cellRow is one row of sql/rollup.sql.
type cellRow struct {
	cellKey
	kind                                                  schema.Kind
	visitors, sinceShares, recent, events                 source.Count
	squares, valueTimesGoals, value, profit, extra, signs big.Int
}

// cellKey is the key of the sums of a row.
type cellKey struct {
	cube   *cube
	bucket int64
	goal   int64 // if several goals are read: noGoal, or that of goal events
	visit.Segment
}

// noGoal is the goal of views and other events of which no goal is counted.
const noGoal = -1

// kindActive is the event of a visitor who is active on a later day. It
// identifies the visitors who are active in a window.
const kindActive schema.Kind = "active"

func (r *cellRow) addTo(m *visit.Moments) {
	visitors, events := int64(r.visitors), int64(r.events)
	switch r.kind {
	case schema.KindView:
		m.Visitors, m.SinceShares, m.Recent, m.Views = visitors, int64(r.sinceShares), int64(r.recent), events
	case kindActive:
		m.Visitors = visitors
	case schema.KindClick:
		m.Clicks = events
	case schema.KindSubmit:
		m.Submits = events
	case schema.KindCompletion:
		m.Completions, m.Completed = events, visitors
	case schema.KindConversion:
		m.Conversions, m.Conversion = events, visitors
	case schema.KindContact:
		m.Contacts = events
	case schema.KindGoal:
		m.Converted = visitors
		m.Goals = stats.Sums{Sum: big.NewInt(events), Squares: &r.squares}
		signs := unpackSigns(&r.signs)
		for i, to := range []*visit.Amounts{&m.Value, &m.Profit, &m.ExtraValue} {
			to.Sum, to.Squares = unpackAmounts([]*big.Int{&r.value, &r.profit, &r.extra}[i])
			to.Nonzero, to.Negative = signs[2*i], signs[2*i+1]
		}
		m.ValueGoals = &r.valueTimesGoals
	}
}

// merged adds up the sums of a cube over the parts of the key that drop
// removes.
func merged(sums map[cellKey]*visit.Moments, of *cube, drop func(*cellKey)) map[cellKey]visit.Moments {
	all := map[cellKey]visit.Moments{}
	for key, m := range sums {
		if key.cube == of {
			drop(&key)
			if had, another := all[key]; another {
				all[key] = had.Merge(*m)
			} else {
				all[key] = *m
			}
		}
	}
	return all
}

func rowsOf(sums map[cellKey]visit.Moments) []visit.Row {
	rows := make([]visit.Row, 0, len(sums))
	for key, m := range sums {
		if m.Visitors != 0 {
			rows = append(rows, visit.Row{Segment: key.Segment, Moments: m})
		}
	}
	return rows
}

func stepsOf(sums map[cellKey]visit.Moments) []visit.Step {
	steps := make([]visit.Step, 0, len(sums))
	for key, m := range sums {
		if !key.ExposedBefore {
			steps = append(steps, visit.Step{Bucket: key.bucket, Row: visit.Row{Segment: key.Segment, Moments: m}})
		}
	}
	slices.SortFunc(steps, func(a, b visit.Step) int { return cmp.Compare(a.Bucket, b.Bucket) })
	return steps
}
