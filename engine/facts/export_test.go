package facts

import (
	"context"
	"maps"
	"math"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine/fold"
	"lifthouse/engine/plan"
	"lifthouse/schema"
)

// ReadAll returns all stored rows of visitors and goal events, in the order of fold.AppendVisitorRows for each visitor.
func ReadAll(ctx context.Context, conn driver.Conn) ([]fold.FactRow, error) {
	return readAll(ctx, &server{Conn: conn, tables: ofServer})
}

// ReadAllOfShard is ReadAll for a replica of a shard.
func ReadAllOfShard(ctx context.Context, conn driver.Conn) ([]fold.FactRow, error) {
	return readAll(ctx, &server{Conn: conn, tables: ofShard})
}

func readAll(ctx context.Context, s *server) (rows []fold.FactRow, err error) {
	s, err = s.ofShown(ctx)
	if err != nil {
		return nil, err
	}
	err = s.readRows(ctx, ofVisitors, func(r *fold.FactRow) error {
		rows = append(rows, *r)
		return nil
	}, s.sectionsOfVisitors()...)
	return rows, err
}

// ofShown returns the server with the generation from which reports are computed.
func (s *server) ofShown(ctx context.Context) (*server, error) {
	at, err := s.readPosition(ctx)
	return s.of(at.Generation), err
}

// StoreFormat changes the format in the stored position.
func StoreFormat(ctx context.Context, conn driver.Conn, format uint32) error {
	s, err := (&server{Conn: conn, tables: ofServer}).ofShown(ctx)
	if err != nil {
		return err
	}
	at, err := s.readPosition(ctx)
	if err != nil {
		return err
	}
	next := at.nextRefresh()
	next.Format = format
	changes := []fold.Change{{FactRow: at.asRow(), Cancels: true}, {FactRow: next.asRow()}}
	batch, err := s.prepareChanges(ctx, "", changes)
	if err != nil {
		return err
	}
	return batch.Send()
}

// ReadAllCells returns all stored cells.
func ReadAllCells(ctx context.Context, conn driver.Conn) (fold.Cells, error) {
	return readAllCells(ctx, &server{Conn: conn, tables: ofServer})
}

// ReadAllCellsOfShard is ReadAllCells for a replica of a shard.
func ReadAllCellsOfShard(ctx context.Context, conn driver.Conn) (fold.Cells, error) {
	return readAllCells(ctx, &server{Conn: conn, tables: ofShard})
}

func readAllCells(ctx context.Context, s *server) (fold.Cells, error) {
	s, err := s.ofShown(ctx)
	if err != nil {
		return nil, err
	}
	all, err := s.readCells(ctx, inGrain, s.sectionsOfGrain(fold.OfAll)...)
	if err != nil {
		return nil, err
	}
	days, err := s.readCells(ctx, inGrain, s.sectionsOfGrain(fold.OfDay)...)
	maps.Copy(all, days)
	return all, err
}

// HasUnfolded reports whether noted events are not folded yet.
func (r *Refresher) HasUnfolded() bool {
	r.backlog.mu.Lock()
	defer r.backlog.mu.Unlock()
	return r.backlog.noted > r.backlog.folded
}

// FoldAll returns the rows of all stored events.
func FoldAll(ctx context.Context, conn driver.Conn) (rows []fold.FactRow, err error) {
	s := &server{Conn: conn, tables: ofServer}
	visitors, err := schema.QueryRows(ctx, conn, "SELECT DISTINCT website_id, visitor_id FROM events", scanVisitor)
	if err != nil || len(visitors) == 0 {
		return nil, err
	}
	events, err := s.readEvents(ctx, visitors, math.MaxInt64)
	return foldEvents(events, fold.MaxVisitorEvents), err
}

// AtOnePosition calls read until the subject's facts do not change during a call.
func (r Reader) AtOnePosition(ctx context.Context, q plan.Question, read func() error) error {
	return r.atOnePosition(ctx, q, func(answer) error { return read() })
}
