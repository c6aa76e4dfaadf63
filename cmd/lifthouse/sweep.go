package main

import (
	"context"
	"log/slog"
	"time"
)

// How often a server on a shared store looks for copies of events that several
// processes stored, and how far back: copies are stored within moments of each
// other, and a process that stood still in between may be minutes late.
const (
	sweepEvery = 10 * time.Second
	sweepBack  = time.Minute
	sweepsFar  = 60 // every so many sweeps, and the first one, go further back
	sweepFar   = time.Hour
)

// followCopies sweeps until the end.
func (s *store) followCopies(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		back := sweepBack
		if n%sweepsFar == 0 {
			back = sweepFar
		}
		removed, err := s.Writer.Sweep(ctx, time.Now().Add(-back))
		switch {
		case err != nil && ctx.Err() == nil:
			slog.WarnContext(ctx, "copies of events not removed", "error", err)
		case removed > 0:
			slog.InfoContext(ctx, "removed copies of events that several processes stored", "copies", removed)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
