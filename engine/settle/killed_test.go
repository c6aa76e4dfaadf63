package settle_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"lifthouse/engine"
	"lifthouse/engine/settle"
	"lifthouse/schema"
	"lifthouse/schema/ingest"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

var errKilled = errors.New("killed")

// mortal does so many things with the store and then nothing more. What it was
// asked last is done, but it is not told.
type mortal struct {
	driver.Conn
	left *int
}

func (c mortal) dead() error {
	if *c.left <= 0 {
		return errKilled
	}
	return nil
}

func (c mortal) Query(ctx context.Context, query string, args ...any) (driver.Rows, error) {
	if *c.left--; *c.left < 0 {
		return nil, errKilled
	}
	return c.Conn.Query(ctx, query, args...)
}

func (c mortal) Exec(ctx context.Context, query string, args ...any) error {
	if *c.left--; *c.left < 0 {
		return errKilled
	}
	return errors.Join(c.Conn.Exec(ctx, query, args...), c.dead())
}

func (c mortal) PrepareBatch(ctx context.Context, query string, opts ...driver.PrepareBatchOption) (driver.Batch, error) {
	if *c.left--; *c.left < 0 {
		return nil, errKilled
	}
	batch, err := c.Conn.PrepareBatch(ctx, query, opts...)
	return mortalBatch{batch, c}, err
}

type mortalBatch struct {
	driver.Batch
	conn mortal
}

func (b mortalBatch) Send() error { return errors.Join(b.Batch.Send(), b.conn.dead()) }

// TestAKilledSettlerLeavesNothingWrong has a settler die after each of its
// statements, in steps and, where tests may be long, in rebuilds. Whatever is read then is right, and the
// next settler goes on.
func TestAKilledSettlerLeavesNothingWrong(t *testing.T) {
	rebuilds := os.Getenv("LIFTHOUSE_LONG") != "" // each takes a second to understand
	s := newShop(t, 3)
	paths := map[string]int{}
	s.more(60)
	s.settle()
	for statements := 1; ; statements++ {
		s.more(3)
		if rebuilds && statements%2 == 0 {
			s.retire()
		}
		left := statements
		dies := settle.New(mortal{s.conn, &left}, s.writer, s.engine)
		err := dies.Round(t.Context())
		s.compare(3, paths)
		s.settle()
		s.compare(3, paths)
		if err == nil && (statements%2 == 0 || !rebuilds) {
			break
		}
	}
	if paths[engine.PathSettled] == 0 {
		t.Error(paths)
	}
}

// TestAKilledEraserLeavesNothingWrong has whoever drops events die after each
// statement.
func TestAKilledEraserLeavesNothingWrong(t *testing.T) {
	if os.Getenv("LIFTHOUSE_LONG") == "" {
		t.Skip("SKIP: one of the long tests, of which each store takes seconds to settle: make test-long")
	}
	paths := map[string]int{}
	for statements := 1; ; statements++ {
		s := newShop(t, 4)
		s.more(80)
		s.settle()
		left := statements
		err := ingest.NewWriter(mortal{s.conn, &left}).DropSubjects(t.Context(), []ingest.SubjectID{{WebsiteID: 1, Subject: schema.SubjectCampaign, ID: 12}})
		s.compare(3, paths)
		s.settle()
		s.compare(3, paths)
		if err == nil {
			return
		}
	}
}

// retire has the next settlement be a rebuild.
func (s *shop) retire() {
	s.t.Helper()
	if _, err := schema.DropSettled(s.t.Context(), s.conn, func(*schema.Settlement) bool { return true }); err != nil {
		s.t.Fatal(err)
	}
}
