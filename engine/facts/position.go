package facts

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine/fold"
	"lifthouse/schema"
)

// Position says how far events are folded.
type Position struct {
	Refresh uint32 // number of the last refresh; 0: none
	Through int64  // acceptance time up to which events are folded, in milliseconds since 1970
	Attempt uint64 // random: several processes may attempt the refresh, and one succeeds
}

// FoldedThrough returns the acceptance time up to which events are folded.
func (p Position) FoldedThrough() time.Time { return time.UnixMilli(p.Through).UTC() }

// ErrIncomplete means that the server does not have all parts of the facts yet. If this persists, the server has
// lost parts, or facts were inserted during a rebuild.
var ErrIncomplete = errors.New("the server does not have all facts yet; " +
	"if this lasts for minutes, rebuild them: lifthouse facts --rebuild")

// readPosition returns the position of the facts of a server. The error may be ErrIncomplete.
func (s *server) readPosition(ctx context.Context) (Position, error) {
	var p Position
	live, copies := 0, int64(0)
	err := schema.EachRow(ctx, s, s.position, func(row driver.Rows) error {
		live++
		return row.Scan(&p.Refresh, &p.Through, &p.Attempt, &copies)
	})
	switch {
	case err != nil:
		return Position{}, fmt.Errorf("read the position of the facts: %w", err)
	case live > 1 || live == 1 && copies != 1:
		return Position{}, ErrIncomplete
	}
	return p, nil
}

// nextRefresh returns the position after another refresh.
func (p Position) nextRefresh(through int64) Position {
	return Position{p.Refresh + 1, through, rand.Uint64()} //nolint:gosec // distinguishes attempts
}

// asRow returns the row of a position.
func (p Position) asRow() fold.Row {
	none := schema.Subject{Kind: schema.SubjectNone}
	return fold.Row{Subject: none, Grain: fold.OfPosition, Visitor: p.Attempt, First: p.Through, Number: p.Refresh}
}
