package ingest

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"sync/atomic"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

var (
	//go:embed sql/last_block.sql
	lastBlock string
	//go:embed sql/others_events.sql
	othersEvents string
)

// A single server of the verified release numbers the blocks of a table in the order in
// which they become visible. So a writer of a shared store knows the ids of all events:
// those that it read from the blocks up to a number, and its own. For a large batch it
// reads the ids that others have inserted since, before its insert and after it, and looks
// up only events whose ids are among them. Without other writers, it looks up nothing.
//
// Replicas number blocks before they become visible, so there every event of a batch is
// looked up.

// manyEvents is the number of events of a batch from which the ids of the others' blocks
// are read: reading them costs as much as some thousand look-ups.
const manyEvents = 8_192

// blocks follows the blocks of a single server. Except the atomic fields, it is guarded by
// writeLock.
type blocks struct {
	ordered atomic.Bool     // the server numbers blocks in the order in which they become visible
	learns  atomic.Bool     // the ids of earlier events are being read
	least   int             // events of a batch from which blocks are followed
	few     uint64          // stored events up to which a write waits until their ids are read
	through uint64          // the ids of all blocks up to this number are known
	started int64           // when the server started, in Unix seconds
	current bool            // the ids are known for the current write
	before  uint64          // the value of through at the beginning of the current write
	others  map[uint64]bool // the ids that others have inserted since the beginning of the current write
}

// readEngine finds out what the store allows beyond a cluster.
func (w *Writer) readEngine(ctx context.Context) error {
	engine, err := schema.ReadEventsEngine(ctx, w.conn)
	w.readsTables = engine.OneServer
	w.blocks.ordered.Store(engine.BlocksOrdered)
	return err
}

// followBlocks makes the ids current for a write of many events. If they are not known
// yet, it starts to read them; until they are known, every event is looked up.
func (w *Writer) followBlocks(ctx context.Context, events int) error {
	w.blocks.current = false
	if events < w.blocks.least || !w.blocks.ordered.Load() || w.blocks.learns.Load() {
		return nil
	}
	if !w.idFilter.isComplete() {
		if known, err := w.learnBlocks(ctx); !known || err != nil {
			return err
		}
	}
	restarted, err := w.readOthers(ctx)
	if err != nil || restarted {
		return err
	}
	w.blocks.current, w.blocks.before, w.blocks.others = true, w.blocks.through, map[uint64]bool{}
	return nil
}

// fewEvents is the number of stored events up to which a write waits until their ids are
// read: less than a second.
const fewEvents = 3_000_000

// learnBlocks reads the ids of all stored events: at once if there are few of them, else
// beside the writes. It reports whether the ids are known.
func (w *Writer) learnBlocks(ctx context.Context) (known bool, err error) {
	var stored uint64
	if err := w.conn.QueryRow(ctx, "SELECT count() FROM events").Scan(&stored); err != nil {
		return false, fmt.Errorf("count the events: %w", err)
	}
	if w.blocks.through, w.blocks.started, err = w.lastBlock(ctx); err != nil {
		return false, err
	}
	w.idFilter.reset()
	if stored <= w.blocks.few {
		err := w.LoadIDs(ctx)
		return err == nil && w.idFilter.isComplete(), err
	}
	w.blocks.learns.Store(true)
	go func() {
		defer w.blocks.learns.Store(false)
		switch err := w.LoadIDs(context.WithoutCancel(ctx)); {
		case err != nil:
			slog.WarnContext(ctx, "read the ids of the events failed; events are looked up", "err", err)
		case !w.idFilter.isComplete(): // there are too many
			w.blocks.ordered.Store(false)
		}
	}()
	return false, nil
}

func (w *Writer) lastBlock(ctx context.Context) (block uint64, started int64, err error) {
	if err = w.conn.QueryRow(ctx, lastBlock).Scan(&block, &started); err != nil {
		err = fmt.Errorf("read the number of the last block: %w", err)
	}
	return block, started, err
}

// readOthers adds the ids that others have inserted since the last call to the filter. It
// reports whether the server was started again: it may use numbers of lost blocks again,
// so all ids must be read again.
func (w *Writer) readOthers(ctx context.Context) (restarted bool, err error) {
	through, started, err := w.lastBlock(ctx)
	if err != nil {
		return false, err
	}
	if started < w.blocks.started-1 || started > w.blocks.started+1 {
		w.blocks.current = false
		w.idFilter.discard()
		return true, nil
	}
	if through <= w.blocks.through {
		return false, nil
	}
	err = schema.EachRow(ctx, w.conn, othersEvents, w.addOther, clickhouse.Named("after", w.blocks.through), clickhouse.Named("through", through), clickhouse.Named("writer", w.name))
	if err != nil {
		return false, fmt.Errorf("read the ids of other writers: %w", err)
	}
	w.blocks.through = through
	return false, nil
}

// addOther adds an id that another process has inserted.
func (w *Writer) addOther(row driver.Rows) error {
	var id uint64
	if err := row.Scan(&id); err != nil {
		return err
	}
	if w.blocks.others != nil {
		w.blocks.others[id] = true
	}
	w.idFilter.addStored(id)
	return nil
}

// possiblyCopied returns the rows of an insert of which another writer may have inserted a
// copy.
func (w *Writer) possiblyCopied(ctx context.Context, rows []schema.Event) ([]schema.Event, error) {
	if !w.blocks.current {
		return rows, nil
	}
	restarted, err := w.readOthers(ctx)
	if restarted || err != nil {
		return rows, err
	}
	var copied []schema.Event
	for i := range rows {
		if w.blocks.others[rows[i].EventID] {
			copied = append(copied, rows[i])
		}
	}
	return copied, nil
}
