package main

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/must"
)

// TestAServerThatDoesNotStopIsCutOff has a background task that ignores the end of its context, on a store that does
// not answer until it is released.
func TestAServerThatDoesNotStopIsCutOff(t *testing.T) {
	var deaf atomic.Bool
	asked, released := make(chan struct{}, 1), make(chan struct{})
	conn := schematest.HookedConn{Conn: schematest.OpenMigrated(t), Before: func(context.Context, string) error {
		if deaf.Load() {
			select {
			case asked <- struct{}{}:
			default:
			}
			<-released
		}
		return nil
	}}
	h := houseOn(t, conn)
	out := capture(t)
	p := &program{stdin: os.Stdin, stdout: out.write, stderr: out.write, dir: ".", getenv: func(string) string { return "" }, overdue: make(chan struct{}), stopMargin: 100 * time.Millisecond}
	p.rootCommand() // sets what the flags have by default
	p.serving.Listen, p.serving.DrainTimeout, p.serving.logLevel = "127.0.0.1:0", 50*time.Millisecond, "error"
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- p.serveStore(ctx, h.store, func(*app.Store, string) {
			deaf.Store(true)
			<-asked // the catalogue is being read
			stop()
		})
	}()
	<-p.overdue
	select {
	case err := <-ended:
		t.Errorf("it ended by itself: %v", err)
	default:
	}
	close(released)
	must.OK(t, <-ended)
	out.text()
}
