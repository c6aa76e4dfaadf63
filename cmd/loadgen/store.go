package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/engine/embedded"
	"lifthouse/engine/source"
	"lifthouse/loadgen/measure"
	"lifthouse/loadgen/population"
	"lifthouse/loadgen/send"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
)

// withStore opens a store that no other process has open, and calls work.
func (p *program) withStore(ctx context.Context, address string, work func(*app.Store) error) error {
	home, err := schema.ParseAddress(address, os.Getenv)
	if err != nil {
		return usageError{err}
	}
	store, err := app.Open(ctx, home, app.Options{Limits: source.DefaultLimits, Times: ingest.DefaultTimes, Complain: p.logf})
	var locked *embedded.LockedError
	if errors.As(err, &locked) {
		return fmt.Errorf("%w; to send events to a running server, use loadgen generate --url", err)
	}
	if err != nil {
		return err
	}
	return errors.Join(work(store), store.Close())
}

// checkEmbedded checks that --store is the address of an embedded store, whose
// CPU time is part of this process.
func checkEmbedded(address string) error {
	if home, err := schema.ParseAddress(address, os.Getenv); err != nil || home.Dir == "" {
		return fmt.Errorf("invalid --store %q: must be an embedded store, such as embedded:./standard, because the CPU time of servers cannot be measured", address)
	}
	return nil
}

// insert inserts the events of a scenario into a store and applies the
// catalogue of the scenario.
func (p *program) insert(ctx context.Context, store *app.Store, s *population.Scenario) (send.Progress, error) {
	update, clearProgress := p.sendProgress("store", s.Visitors())
	sent, outcome, err := send.Insert(ctx, s, store.Writer, update)
	clearProgress()
	if err != nil {
		return sent, err
	}
	p.logf("%d rows inserted, %d duplicates (%d conflicting)", outcome.Inserted, outcome.Duplicates, outcome.Conflicts)
	_, err = store.Catalogue.Apply(ctx, s.Catalogue(), false)
	return sent, err
}

// whileFollowing calls work while the engine follows the versions of the stored
// data, as in a server.
func whileFollowing(ctx context.Context, s *app.Store, work func() error) error {
	followCtx, stop := context.WithCancel(ctx)
	var background sync.WaitGroup
	background.Go(func() { s.Engine.Follow(followCtx, time.Second) })
	defer background.Wait()
	defer stop()
	return work()
}

// waitUntilIdle returns when the store has loaded the ids of its events and
// runs no merges.
func waitUntilIdle(ctx context.Context, s *app.Store) error {
	s.Learned()
	return measure.WaitForMerges(ctx, s.Conn)
}

// refreshRollups brings the rollups up to date.
func (p *program) refreshRollups(ctx context.Context, s *app.Store) error {
	p.logf("refreshing rollups")
	started := time.Now()
	if err := s.Refresher.RefreshAll(ctx); err != nil {
		return err
	}
	p.logf("refreshed rollups in %s", time.Since(started).Round(time.Millisecond))
	return nil
}

// findCampaign returns a campaign with its account, or nil if the catalogue
// does not have the campaign.
func findCampaign(s *catalogue.Snapshot, id int64) (account int64, campaign *catalogue.LiveCampaign) {
	for _, owned := range s.Accounts() {
		if c, ok := owned.Campaigns[id]; ok {
			return owned.ID, &c
		}
	}
	return 0, nil
}

// writeFile creates a file with the content that write writes.
func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// writeJSON writes a value to a JSON file.
func writeJSON(path string, value any) error {
	return writeFile(path, func(w io.Writer) error { return encodeJSON(w, value) })
}

// encodeJSON encodes a value as indented JSON.
func encodeJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
