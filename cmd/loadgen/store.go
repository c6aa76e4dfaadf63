package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/terminal"
	"lifthouse/engine/embedded"
	"lifthouse/engine/source"
	"lifthouse/loadgen/measure"
	"lifthouse/loadgen/population"
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
	store, err := app.OpenStore(ctx, home, app.Options{Limits: source.DefaultLimits, Times: ingest.DefaultTimes})
	var locked *embedded.LockedError
	if errors.As(err, &locked) {
		return fmt.Errorf("%w; stop this process, or write the events with loadgen generate -o and import them with lifthouse import", err)
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

// insertScenario inserts the events of a scenario into a store and applies the
// catalogue of the scenario.
func (p *program) insertScenario(ctx context.Context, store *app.Store, s *population.Scenario) (population.Progress, error) {
	update := p.sendProgress("store", s.TotalVisitors())
	sent, err := population.InsertScenario(ctx, s, store.Writer, update)
	if err != nil {
		return sent, err
	}
	_, err = store.Catalogue.ApplyFile(ctx, s.CatalogueFile(), false)
	return sent, err
}

// foldAndMerge folds all events and merges their parts, so that neither happens during a measurement. The merge also
// removes copies of events, which the competitors would count.
func (p *program) foldAndMerge(ctx context.Context, s *app.Store) error {
	p.printDiagnostic("folding the events")
	started := time.Now()
	if err := s.Facts.RefreshFacts(ctx); err != nil {
		return err
	}
	p.printDiagnostic("folded the events in %s", time.Since(started).Round(time.Millisecond))
	if err := measure.MergeParts(ctx, s.Conn); err != nil {
		return err
	}
	return measure.WaitForMerges(ctx, s.Conn)
}

// findCampaign returns a campaign with its account, or nil if the catalogue
// does not have the campaign.
func findCampaign(s *catalogue.Snapshot, id int64) (account int64, campaign *catalogue.LiveCampaign) {
	for _, owned := range s.AllAccounts() {
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

// sendProgress returns a function that shows how many visitors have been sent.
func (p *program) sendProgress(name string, visitors int) func(now population.Progress) {
	show := terminal.NewProgress()
	return func(now population.Progress) {
		show.ShowLine(func() {
			p.printDiagnostic("%s: %d of %d visitors, %d events", name, now.Visitors, visitors, now.Events)
		})
	}
}

// phaseProgress returns a function that shows the progress of phases, and a line at the end of each phase.
func (p *program) phaseProgress() func(phase string, done, total int) {
	var show *terminal.Progress
	current := ""
	return func(phase string, done, total int) {
		if phase != current {
			show = terminal.NewProgress()
			current = phase
		}
		line := func() { _, _ = fmt.Fprintf(p.err, "%s: %d of %d\n", phase, done, total) }
		if done < total {
			show.ShowLine(line)
			return
		}
		line()
	}
}
