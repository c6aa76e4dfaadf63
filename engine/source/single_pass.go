package source

import (
	"context"
	"errors"
	"fmt"

	"lifthouse/engine/visit"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// maxRecounted is the maximum number of visitors that are recounted. For more,
// the reference counts all visitors, which is not slower.
const maxRecounted = 20_000

// maxRecountedEvents is the maximum number of events of the recounted visitors.
// They are in memory, about 100 bytes each, for each report that runs. No sum of
// so many amounts overflows.
const maxRecountedEvents = 300_000

// maxNamed is the maximum number of dimension values that are looked up, one
// visitor each. More values are only needed if very many have about equally few
// visitors; then the reference reads all of them.
const maxNamed = 20_000

// MaxRanks is the maximum number of variations: one of 64 bits each, except the
// first bit and that of unknown variations.
const MaxRanks = 62

// The segment of a visitor as packed by sql/single_pass.sql: the rank of the
// first variation, and below it these bits. The lowest bit marks visitors to
// recount.
const (
	multiExposedBit  = 2
	exposedBeforeBit = 4
	segmentBits      = 3
)

// SinglePassSlots are the slots of sql/single_pass.sql.
type SinglePassSlots struct {
	Slots
	Shows         bool // whether attributes of the first view are needed
	ByDimension   bool
	DimensionHash Expr // of a view: 64-bit hash of the dimension value
	InTime        Expr // of an event: whether it is before the end of the window
	From          bool // whether the window has a start
}

// singlePassRow is one row of sql/single_pass.sql.
type singlePassRow struct {
	visit.Row
	example []uint64 // a visitor with the dimension value of the row, if known
	kept    bool     // the value may be among the most frequent
	recount []uint64 // visitors that one pass cannot decide
}

// SinglePass counts the events in the store in a single pass. The events of
// visitors that one pass cannot decide are counted in this process. Dimension values
// that cannot be among the most frequent are merged into others.
type SinglePass struct{ *Execution }

// Name returns NameSinglePass.
func (x SinglePass) Name() string { return NameSinglePass }

// Read declines if too many visitors, or visitors with too many events, must be
// counted in this process.
func (x SinglePass) Read(ctx context.Context) (*visit.Rows, string, error) {
	rows, declined, err := x.rows(ctx)
	if err != nil || declined != "" {
		return nil, declined, err
	}
	steps, err := x.steps(ctx)
	return x.Answer(rows, steps), "", err
}

func (x SinglePass) rows(ctx context.Context) (rows []visit.Row, declined string, err error) {
	found, err := x.segments(ctx)
	if err != nil {
		return nil, "", err
	}
	var recount, examples []uint64
	for _, r := range found {
		recount = append(recount, r.recount...)
		examples = append(examples, r.example...)
	}
	switch {
	case len(recount) > maxRecounted:
		return nil, "too many visitors need their lists of events", nil
	case len(examples) > maxNamed:
		return nil, "too many values of the dimension have about equally few visitors", nil
	}
	names, err := x.names(ctx, examples)
	if err != nil {
		return nil, "", err
	}
	again, declined, err := x.recounted(ctx, recount)
	if err != nil || declined != "" {
		return nil, declined, err
	}
	return named(found, names, again), "", nil
}

// named sets the dimension values of the rows, and adds the recounted rows: to
// their value if it has a separate cell, otherwise to the others.
func named(found []singlePassRow, names map[uint64]string, again []visit.Row) []visit.Row {
	var rows []visit.Row
	var others bool
	alone := map[string]bool{}
	for _, r := range found {
		r.Others = !r.kept
		others = others || r.Others
		for _, visitor := range r.example {
			r.Dimension = names[visitor]
			alone[r.Dimension] = true
		}
		if r.Visitors > 0 {
			rows = append(rows, r.Row)
		}
	}
	for _, r := range again {
		r.Others = others && !alone[r.Dimension]
		rows = append(rows, r)
	}
	return rows
}

func (x SinglePass) segments(ctx context.Context) ([]singlePassRow, error) {
	query, err := x.Query()
	if err != nil {
		return nil, err
	}
	ids := x.variationIDs()
	var rows []singlePassRow
	err = x.Store.Each(ctx, query, func(found driver.Rows) error {
		r := singlePassRow{kept: true}
		var segment uint16
		first := []any{&segment, &r.recount}
		if x.Dimension != "" {
			first = append(first, &r.example, &r.kept)
		}
		var err error
		r.Moments, err = scanMoments(found, first...)
		r.ExposedBefore, r.MultiExposed = segment&exposedBeforeBit != 0, segment&multiExposedBit != 0
		if rank := int(segment >> segmentBits); rank <= len(ids) {
			r.VariationID = ids[rank-1]
		}
		rows = append(rows, r)
		return err
	})
	return rows, err
}

// names returns the dimension value of the first view of each visitor.
func (x SinglePass) names(ctx context.Context, visitors []uint64) (map[uint64]string, error) {
	if len(visitors) == 0 {
		return nil, nil
	}
	q, s := x.referenceQuery()
	q.Params = append(SubjectParams(x.Subject), Param{"visitor_ids", visitors})
	if err := q.Render("names.sql", s); err != nil {
		return nil, err
	}
	names := make(map[uint64]string, len(visitors))
	err := x.Store.Each(ctx, q, func(found driver.Rows) error {
		var visitor uint64
		var name string
		err := found.Scan(&visitor, &name)
		names[visitor] = name
		return err
	})
	return names, err
}

// recounted counts the events of the given visitors in this process.
func (x SinglePass) recounted(ctx context.Context, visitors []uint64) (rows []visit.Row, declined string, err error) {
	if len(visitors) == 0 {
		return nil, "", nil
	}
	f, err := x.count(ctx, visitors)
	if err != nil {
		return nil, "", err
	}
	defer f.release()
	if len(f.events) > maxRecountedEvents {
		return nil, fmt.Sprintf("visitors that need their lists of events have more than %d events", maxRecountedEvents), nil
	}
	return f.rows(), "", nil
}

// Query compiles the plan into one pass over the events. It leaves some visitors
// to recounted.
func (x SinglePass) Query() (*Query, error) {
	q, reference := x.referenceQuery()
	s := SinglePassSlots{Slots: reference, ByDimension: x.Dimension != "", DimensionHash: "toUInt64(0)", InTime: "true", From: !x.Filters.From.IsZero()}
	s.Shows = needsAttributes(x.Plan)
	ids := x.variationIDs()
	ranks := make([]uint16, len(ids))
	for i := range ranks {
		ranks[i] = uint16(i + 1) //nolint:gosec // at most maxRanks
	}
	q.Params = append(append(q.Params, x.sumsParams()...), Param{"variation_ids", ids}, Param{"ranks", ranks},
		Param{"from_at", x.From().UnixMilli()}, Param{"to_at", x.To().UnixMilli()})
	if s.ByDimension {
		s.DimensionHash = "xxHash64(" + Columns[string(x.Dimension)] + ")"
		q.Params = append(q.Params, Param{"top", uint32(x.Top)}) //nolint:gosec // maxBreakdown
	}
	if !x.Filters.To.IsZero() {
		s.InTime = "time < toDateTime64({to:String}, 3, 'UTC')"
	}
	return q, errors.Join(q.Render("single_pass.sql", s), x.overShards(q, shardSlots{Of: "one row per segment", Keys: []string{"segment"}, Recount: true}))
}
