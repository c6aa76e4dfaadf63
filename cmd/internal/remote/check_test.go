package remote

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestChecksAreNoFailedCommands checks that a client which only asks whether a process listens leaves no warning.
func TestChecksAreNoFailedCommands(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	socket := filepath.Join(t.TempDir(), "s")
	var config net.ListenConfig
	listener := must.Get(config.Listen(t.Context(), "unix", socket))(t)
	ctx, stop := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() { ServeCommands(ctx, listener, func(context.Context, Command) int { return 0 }) })
	for range 50 {
		check.That(t, IsServed(t.Context(), socket), "nobody listens")
	}
	stop()
	serving.Wait()
	check.Equal(t, log.String(), "", "the log")
}
