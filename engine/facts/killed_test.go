package facts_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine/embedded"
	"lifthouse/engine/facts"
	"lifthouse/engine/fold"
	"lifthouse/schema"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// childVariable is the environment variable that makes the test binary a process that stores events and refreshes their
// facts until it is killed. Its value is the folder of the store.
const childVariable = "LIFTHOUSE_TEST_FACTS"

// TestKilledProcesses kills processes in the middle of inserts and refreshes. The next process finds facts that are
// those of the events, with no row too few or too many.
func TestKilledProcesses(t *testing.T) {
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(20261126, 11))
	for range tier.Of(1, 20) {
		child := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this program
		child.Env = append(os.Environ(), childVariable+"="+dir)
		child.Stderr = os.Stderr
		out := must.Get(child.StdoutPipe())(t)
		must.OK(t, child.Start())
		// each line is a step of the process, which is killed at a moment of a later one
		lines := bufio.NewReader(out)
		for range 2 + random.IntN(30) {
			line, err := lines.ReadString('\n')
			if err != nil || strings.HasPrefix(line, "wrong") {
				rest, _ := io.ReadAll(lines)
				t.Fatalf("%s%s%v", line, rest, err)
			}
		}
		for until := time.Now().Add(time.Duration(random.IntN(30_000)) * time.Microsecond); time.Now().Before(until); {
		}
		must.OK(t, child.Process.Kill())
		_ = child.Wait()
	}
}

// runChild checks the facts of a store, and then changes them until the process is killed.
func runChild(dir string) error {
	ctx := context.Background()
	engine, err := embedded.Open(ctx, dir, embedded.Options{})
	if err != nil {
		return err
	}
	conn, err := clickhouse.Open(engine.ClientOptions())
	if err != nil {
		return err
	}
	if _, err := schema.Migrate(ctx, conn); err != nil {
		return err
	}
	r := facts.NewRefresher(conn, true)
	if _, err := r.RefreshFacts(ctx); err != nil {
		return err
	}
	if err := checkAgainstEvents(ctx, conn); err != nil {
		return err
	}
	if found, err := r.ScrubFacts(ctx, 0, math.MaxUint64); err != nil || found.Wrong > 0 || len(found.Lost) > 0 {
		return fmt.Errorf("%+v, %w", found, err)
	}
	w := &world{World: severalDays(uint64(time.Now().UnixNano())), conn: conn} //nolint:gosec // any
	for {
		w.at = time.Now().UTC().Truncate(time.Millisecond)
		events := w.batch(1 + w.IntN(40))
		_, _ = fmt.Fprintln(os.Stdout, "insert")
		if err := schema.InsertEvents(ctx, conn, events, w.at); err != nil {
			return err
		}
		_, _ = fmt.Fprintln(os.Stdout, "refresh")
		if _, err := r.RefreshFacts(ctx); err != nil {
			return err
		}
	}
}

// checkAgainstEvents compares all facts with the stored events.
func checkAgainstEvents(ctx context.Context, conn driver.Conn) error {
	want, err := facts.FoldAll(ctx, conn)
	if err != nil {
		return err
	}
	stored, err := facts.ReadAll(ctx, conn)
	if err != nil {
		return err
	}
	cells, err := facts.ReadAllCells(ctx, conn)
	if err != nil {
		return err
	}
	if n := len(fold.AppendChanges(nil, stored, want)); n > 0 || !equalCells(cells, want) {
		return errors.Join(errDiffers, fmt.Errorf("%d changes of %d rows", n, len(want)))
	}
	return nil
}
