package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/engine"
	"lifthouse/engine/embedded"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/spf13/cobra"
)

const checkHelp = `Check shows the configuration that holds and where each value comes from, and looks whether the store answers, whether
its tables are of this release, and what the catalogue has. It says what is wrong and what to do about it. With --data it
reads every stored part and compares it with its checksums, about a second for a gigabyte. With --deep it does so, looks
at every event for whether it is stored once and counts where it should, and compares reports of every campaign and widget
that has settled sums with the same ones counted from the events: some minutes for a hundred million. Tables and data stay
as they are, but with --drop-damaged: that gives up the rows of parts which the store could not read when it opened,
without which nothing else opens it; with --remove-copies, which removes the copies of events that several processes stored
on a server (a server that runs removes those of the last hour itself); and with --rebuild-counters, after which the live
counters agree with the events. An embedded store does that by itself after a process that was killed; on a server
nothing else may write meanwhile.`

func (p *program) checkCommand() *cobra.Command {
	var f findings
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say whether the configuration, the store and the catalogue will do",
		Long:  checkHelp,
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return p.check(cmd.Context(), &f) },
	}
	p.serveFlags(cmd)
	cmd.Flags().BoolVar(&f.data, "data", false, "read every stored part and compare it with its checksums")
	cmd.Flags().BoolVar(&f.deep, "deep", false, "--data, and whether all that is kept agrees with the events")
	cmd.Flags().BoolVar(&f.rebuildCounters, "rebuild-counters", false, "count the live counters anew from the events")
	cmd.Flags().BoolVar(&f.removeCopies, "remove-copies", false, "remove copies of events that several processes stored")
	cmd.Flags().BoolVar(&f.dropDamaged, "drop-damaged", false, "give up the rows of parts that could not be read")
	return cmd
}

// findings are what a check tells.
type findings struct {
	p      *program
	failed bool

	data, deep, dropDamaged, rebuildCounters, removeCopies bool
}

func (f *findings) good(what, format string, args ...any) {
	f.p.say("%-9s  ok       %s", what, fmt.Sprintf(format, args...))
}

func (f *findings) note(what, format string, args ...any) {
	f.p.say("%-9s  note     %s", what, fmt.Sprintf(format, args...))
}

func (f *findings) wrong(what string, err error) {
	f.failed = true
	f.p.say("%-9s  WRONG    %v", what, err)
}

func (p *program) check(ctx context.Context, f *findings) error {
	if p.running == nil { // else its configuration was shown by the caller
		p.showSettings()
	}
	f.p = p
	if p.running == nil {
		f.server()
	}
	err := p.checkStore(ctx, f)
	var exit *exitError
	if errors.As(err, &exit) || err == nil && f.failed {
		return &exitError{exitFailed}
	}
	return err
}

func (p *program) showSettings() {
	table := tabwriter.NewWriter(p.out, 0, 0, 3, ' ', 0)
	for _, s := range p.settings {
		_, _ = fmt.Fprintf(table, "%s\t%s\t(%s)\n", s.Name, s.shown(), s.from)
	}
	_ = table.Flush()
	p.say("")
}

// server looks at what serve needs beside the store.
func (f *findings) server() {
	if _, err := f.p.certificate(); err != nil {
		f.wrong("server", err)
	}
	for _, warning := range append(f.p.serving.exposures(), f.p.unknownVariables()...) {
		f.note("server", "%s", warning)
	}
}

// checkStore looks at the store as it is, or has the process look that holds
// it.
func (p *program) checkStore(ctx context.Context, f *findings) error {
	if p.running != nil {
		f.tables(ctx, p.running.Conn, nil) // it was compared when the store opened
		return nil
	}
	address, err := schema.ParseAddress(p.address, p.getenv)
	if err != nil {
		return usageError{err}
	}
	if address.Dir != "" {
		dir := p.path(address.Dir)
		if isEmpty(dir) {
			f.note("store", "there is none at %s yet; lifthouse serve makes it", dir)
			return nil
		}
		held, err := app.OpenEmbedded(ctx, dir, p.fsync, 0)
		var locked *embedded.LockedError
		if errors.As(err, &locked) {
			return p.checkedByHolder(ctx, f, locked)
		}
		if err != nil {
			f.wrong("store", err)
			return nil
		}
		defer func() { _ = held.Close() }()
		if address.Options, err = app.EmbeddedOptions(ctx, held); err != nil {
			f.wrong("store", err)
			return nil
		}
	}
	conn, err := schema.Reach(ctx, address)
	if err != nil {
		f.wrong("store", fmt.Errorf("%w; is the address %s right, and the server up?", err, schema.ShowAddress(p.address)))
		return nil
	}
	defer func() { _ = conn.Close() }()
	var manifest *schema.Manifest
	if address.Dir != "" {
		manifest = schema.NewManifest(conn, p.path(address.Dir), p.fsync)
	}
	f.tables(ctx, conn, manifest)
	return nil
}

// checkedByHolder has the process that serves the store look at it.
func (p *program) checkedByHolder(ctx context.Context, f *findings, locked *embedded.LockedError) error {
	code, err := p.forward(ctx, locked)
	if err != nil {
		f.wrong("store", fmt.Errorf("%w, and it takes no commands: %w", locked, err))
		return nil
	}
	if code != exitOK {
		return &exitError{code}
	}
	return nil
}

// tables looks at a store that answers.
func (f *findings) tables(ctx context.Context, conn driver.Conn, manifest *schema.Manifest) {
	f.good("store", "answers")
	f.room(ctx, conn)
	if err := schema.CheckTableForm(ctx, conn); err != nil {
		f.wrong("schema", err)
		return
	}
	pending, err := schema.Pending(ctx, conn)
	switch {
	case err != nil:
		f.wrong("schema", err)
		return
	case len(pending) > 0:
		f.note("schema", "to be migrated: %s; lifthouse migrate does it, and serve", strings.Join(pending, ", "))
		return
	}
	f.good("schema", "of this release")
	f.parts(ctx, conn, manifest)
	if f.removeCopies || f.rebuildCounters || f.deep {
		if err := schema.SyncReplicas(ctx, conn); err != nil {
			f.wrong("events", err)
		}
	}
	if f.removeCopies || f.rebuildCounters && manifest == nil { // a copy whose removal is unfinished would be counted off twice
		f.sweep(ctx, conn, manifest == nil)
	}
	if f.rebuildCounters {
		f.count(ctx, conn)
	}
	if f.deep {
		f.rows(ctx, conn)
	}
	s, err := app.On(ctx, conn, app.Options{Limits: engine.DefaultLimits})
	if err != nil {
		f.wrong("catalogue", err)
		return
	}
	f.catalogue(s.Catalogue.Snapshot())
	f.rollups(ctx, s.Engine)
}

// mostVerified is how many subjects check compares the reports of, unless it
// looks deep: each of them counts all its events three times.
const maxVerified = 3

// settled compares some reports from settled sums with the same ones counted
// from the events.
func (f *findings) rollups(ctx context.Context, e *engine.Engine) {
	subjects, err := e.RollupSubjects(ctx)
	if err != nil {
		f.wrong("settled", err)
		return
	}
	if !f.deep {
		subjects = subjects[:min(len(subjects), maxVerified)]
	}
	for _, of := range subjects {
		switch compared, err := e.Verify(ctx, of); {
		case err != nil:
			f.wrong("settled", err)
		case compared > 0:
			f.good("settled", "%s: %d reports are the same as counted from the events", of, compared)
		default:
			f.note("settled", "%s: not compared, for events wait to be settled; a server does, and lifthouse rollup", of)
		}
	}
}

// parts looks whether the store has all that was stored.
func (f *findings) parts(ctx context.Context, conn driver.Conn, manifest *schema.Manifest) {
	err := schema.CheckDamage(ctx, conn, manifest)
	var damaged *schema.DamagedError
	switch {
	case errors.As(err, &damaged) && f.dropDamaged:
		err := f.exclusively(ctx, func() error { return schema.DropDamaged(ctx, conn, manifest, damaged) })
		if err != nil {
			f.wrong("data", err)
			return
		}
		if damaged.Manifest != nil {
			f.note("data", "listed the parts that are there; any that were missing before are lost")
		}
		f.note("data", "gave up %d damaged parts and counted the remaining events; send the lost events again if you have them", len(damaged.Parts))
	case err != nil:
		f.wrong("data", err)
	}
	if !f.data && !f.deep {
		return
	}
	faults, err := schema.CheckData(ctx, conn)
	if err != nil {
		f.wrong("data", err)
		return
	}
	for _, fault := range faults {
		f.wrong("data", fmt.Errorf("%s; a backup has it (lifthouse restore)", fault))
	}
	if len(faults) == 0 {
		f.good("data", "every part is as it was written")
	}
}

// count makes the live counters right, while this process writes nothing.
func (f *findings) count(ctx context.Context, conn driver.Conn) {
	var changed bool
	repair := func() (err error) {
		changed, err = schema.RepairStats(ctx, conn)
		return err
	}
	err := f.exclusively(ctx, repair)
	switch {
	case err != nil:
		f.wrong("events", err)
	case changed:
		f.note("events", "the live counters were wrong, and are right again")
	default:
		f.good("events", "the live counters were right")
	}
}

// sweep removes the copies of events that a store on servers may have.
func (f *findings) sweep(ctx context.Context, conn driver.Conn, shared bool) {
	if !shared {
		f.good("events", "an embedded store has no copies")
		return
	}
	w := ingest.NewWriter(conn)
	err := w.Share(ctx)
	var removed int
	if err == nil {
		removed, err = w.Sweep(ctx, time.UnixMilli(0))
	}
	switch {
	case err != nil:
		f.wrong("events", err)
	case removed > 0:
		f.note("events", "removed %d copies of events", removed)
	default:
		f.good("events", "there are no copies")
	}
}

// exclusively does the work while this process writes nothing.
func (f *findings) exclusively(ctx context.Context, work func() error) error {
	if f.p.running == nil {
		return work()
	}
	return f.p.running.Writer.Exclusively(ctx, work)
}

// rows looks whether all that is kept follows from the events.
func (f *findings) rows(ctx context.Context, conn driver.Conn) {
	faults, err := schema.CheckRows(ctx, conn)
	if err != nil {
		f.wrong("events", err)
		return
	}
	for _, fault := range faults {
		f.wrong("events", errors.New(fault))
	}
	if len(faults) == 0 {
		f.good("events", "each is stored once and counts where it should, and the live counters agree")
	}
}

// littleRoom is the share of a disk below which merges of large parts may find
// no room.
const littleRoom = 0.1

// room looks whether the disks have some left.
func (f *findings) room(ctx context.Context, conn driver.Conn) {
	disks, err := schema.Disks(ctx, conn)
	if err != nil {
		f.note("disk", "%v", err)
		return
	}
	for _, d := range disks {
		share := float64(d.Free) / float64(max(d.Total, 1))
		if share < littleRoom {
			f.note("disk", "%s has %d MB of %d free: make room, or --retention-days erases what has ended", d.Disk, d.Free>>20, d.Total>>20)
			continue
		}
		f.good("disk", "%s has %d MB of %d free", d.Disk, d.Free>>20, d.Total>>20)
	}
}

// standing looks at what the catalogue says.
func (f *findings) catalogue(s *catalogue.Snapshot) {
	var faults catalogue.Faults
	if errors.As(s.Validate(), &faults) {
		for _, fault := range faults {
			f.wrong("catalogue", catalogue.Faults{fault})
		}
		f.note("catalogue", "the faults are in what lifthouse export writes: correct it there, and apply that file")
	}
	accounts := s.Accounts()
	if len(accounts) == 0 {
		f.note("catalogue", "is empty: declare accounts, websites, goals and campaigns with lifthouse apply -f catalog.yaml")
	}
	for _, a := range accounts {
		f.good("catalogue", "account %d (%s): websites %d, goals %d, targets %d, campaigns %d, widgets %d",
			a.ID, a.Name, len(a.Websites), len(a.Goals), len(a.Targets), len(a.Campaigns), len(a.Widgets))
		if len(s.Tokens(a.ID)) == 0 {
			f.note("catalogue", "account %d has no token: lifthouse token create --account %d makes one", a.ID, a.ID)
		}
	}
}
