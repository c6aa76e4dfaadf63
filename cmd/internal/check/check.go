// Package check looks for faults in a store and its catalogue.
package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/engine"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Options select checks and repairs beyond the quick checks.
type Options struct {
	Data            bool // read every part and compare its checksums
	Deep            bool // Data, and compare everything that is computed from the events
	DropDamaged     bool // give up the rows of damaged parts
	RebuildCounters bool
	RemoveCopies    bool
}

// Report prints findings, one line each.
type Report struct {
	To     io.Writer
	Failed bool // whether there was a fault

	Servers *schema.Address // of the store, which other processes may write to; nil: it is embedded

	Options
	// Exclusively runs work while no other goroutine of this process writes to
	// the store.
	Exclusively func(ctx context.Context, work func() error) error
}

// OK prints that an aspect was checked and has no fault.
func (r *Report) OK(aspect, format string, args ...any) {
	_, _ = fmt.Fprintf(r.To, "%-9s  ok       %s\n", aspect, fmt.Sprintf(format, args...))
}

// Note prints an advice that is not a fault.
func (r *Report) Note(aspect, format string, args ...any) {
	_, _ = fmt.Fprintf(r.To, "%-9s  note     %s\n", aspect, fmt.Sprintf(format, args...))
}

// Fault prints a fault.
func (r *Report) Fault(aspect string, err error) {
	r.Failed = true
	_, _ = fmt.Fprintf(r.To, "%-9s  WRONG    %v\n", aspect, err)
}

// Store checks an open store, and repairs what the options select. The manifest
// is nil for servers, and for a store that this process serves.
func (r *Report) Store(ctx context.Context, conn driver.Conn, manifest *schema.Manifest) {
	r.OK("store", "answers")
	r.servers(ctx, conn)
	r.disks(ctx, conn)
	if !r.schema(ctx, conn) {
		return
	}
	r.parts(ctx, conn, manifest)
	if r.RemoveCopies || r.RebuildCounters || r.Deep {
		if err := schema.SyncReplicas(ctx, conn); err != nil {
			r.Fault("events", err)
		}
	}
	// An unfinished removal of copies must be finished before the counters are rebuilt; else it would be subtracted twice.
	if r.RemoveCopies || r.RebuildCounters && r.Servers != nil {
		r.copies(ctx, conn, r.Servers != nil)
	}
	if r.RebuildCounters {
		r.counters(ctx, conn)
	}
	if r.Deep {
		r.rows(ctx, conn)
	}
	s, err := app.On(ctx, conn, app.Options{Limits: source.DefaultLimits})
	if err != nil {
		r.Fault("catalogue", err)
		return
	}
	r.catalogue(s.Catalogue.Snapshot())
	if r.Servers != nil {
		defer func() { _ = s.CloseReplicas() }()
		if _, err := s.ShareRollups(ctx, *r.Servers, source.DefaultLimits); err != nil {
			r.Fault("rollups", err)
			return
		}
	}
	r.rollups(ctx, s.Engine)
}

// schema checks the form and the version of the tables. It returns false if
// nothing else can be checked.
func (r *Report) schema(ctx context.Context, conn driver.Conn) bool {
	if err := schema.CheckTableForm(ctx, conn); err != nil {
		r.Fault("schema", err)
		return false
	}
	pending, err := schema.Pending(ctx, conn)
	switch {
	case err != nil:
		r.Fault("schema", err)
		return false
	case len(pending) > 0:
		r.Note("schema", "pending migrations: %s; lifthouse migrate or lifthouse serve applies them", strings.Join(pending, ", "))
		return false
	}
	r.OK("schema", "is up to date")
	return true
}

// maxVerified is the number of subjects whose reports are compared unless the
// check is deep. Each comparison reads all events of the subject three times.
const maxVerified = 3

// rollups compares reports from rollups with reports from the events.
func (r *Report) rollups(ctx context.Context, e *engine.Engine) {
	subjects, err := e.Rollups.Subjects(ctx)
	if err != nil {
		r.Fault("rollups", err)
		return
	}
	for _, server := range e.Rollups.Away() {
		r.Note("rollups", "those of %s cannot be used: it must answer under this name, which it has in remote_servers, and lifthouse migrate must have created its tables", server)
	}
	restored := e.Rollups.Restored()
	if restored != nil && (!restored.Unnumbered || len(subjects) > 0) { // else no process has prepared the tables yet
		r.Fault("rollups", restored)
		return
	}
	r.activity(ctx, e, len(subjects))
	if !r.Deep {
		subjects = subjects[:min(len(subjects), maxVerified)]
	}
	for _, of := range subjects {
		switch compared, skipped, err := e.Verify(ctx, of); {
		case err != nil:
			r.Fault("rollups", err)
		case len(skipped) == 0:
			r.OK("rollups", "%s: %d reports equal those counted from the events", of, compared)
		default:
			r.Note("rollups", "%s: %d reports equal those counted from the events; not compared: %s; if the rollup lacks events, a server or lifthouse rollup adds them",
				of, compared, strings.Join(skipped, "; "))
		}
	}
}

// parts checks that all stored rows are there and, if selected, their checksums.
func (r *Report) parts(ctx context.Context, conn driver.Conn, manifest *schema.Manifest) {
	err := schema.CheckDamage(ctx, conn, manifest)
	var damaged *schema.DamagedError
	switch {
	case errors.As(err, &damaged) && r.DropDamaged:
		err := r.Exclusively(ctx, func() error { return schema.DropDamaged(ctx, conn, manifest, damaged) })
		if err != nil {
			r.Fault("data", err)
			return
		}
		if damaged.Manifest != nil {
			r.Note("data", "wrote a new manifest of the existing parts; parts that were missing before are lost")
		}
		r.Note("data", "dropped %d damaged parts and counted the remaining events; send the lost events again if you have them", len(damaged.Parts))
	case err != nil:
		r.Fault("data", err)
	}
	if !r.Data && !r.Deep {
		return
	}
	faults, err := schema.CheckData(ctx, conn)
	if err != nil {
		r.Fault("data", err)
		return
	}
	for _, fault := range faults {
		r.Fault("data", fmt.Errorf("%s; %s, restore a backup (lifthouse restore)", fault, schema.RestartFirst))
	}
	if len(faults) == 0 {
		r.OK("data", "the checksums of all parts match")
	}
}

// counters rebuilds the live counters.
func (r *Report) counters(ctx context.Context, conn driver.Conn) {
	var changed bool
	err := r.Exclusively(ctx, func() (err error) {
		changed, err = schema.RepairStats(ctx, conn)
		return err
	})
	switch {
	case err != nil:
		r.Fault("events", err)
	case changed:
		r.Note("events", "repaired the live counters")
	default:
		r.OK("events", "the live counters match the events")
	}
}

// copies removes copies of events from a store on servers.
func (r *Report) copies(ctx context.Context, conn driver.Conn, shared bool) {
	if !shared {
		r.OK("events", "an embedded store has no copies of events")
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
		r.Fault("events", err)
	case removed > 0:
		r.Note("events", "removed %d copies of events", removed)
	default:
		r.OK("events", "there are no copies of events")
	}
}

// rows checks that everything that is computed from the events matches them.
func (r *Report) rows(ctx context.Context, conn driver.Conn) {
	faults, err := schema.CheckRows(ctx, conn)
	if err != nil {
		r.Fault("events", err)
		return
	}
	for _, fault := range faults {
		r.Fault("events", errors.New(fault))
	}
	if len(faults) == 0 {
		r.OK("events", "each event is stored once, attributed correctly, and the live counters match")
	}
}

// minFree is the free share of a disk below which merges of large parts may fail.
const minFree = 0.1

// disks checks the free space.
func (r *Report) disks(ctx context.Context, conn driver.Conn) {
	disks, err := schema.Disks(ctx, conn)
	if err != nil {
		r.Note("disk", "%v", err)
		return
	}
	for _, d := range disks {
		share := float64(d.Free) / float64(max(d.Total, 1))
		if share < minFree {
			r.Note("disk", "%s has %d of %d MB free: add space, or delete old events with --retention-days", d.Disk, d.Free>>20, d.Total>>20)
			continue
		}
		r.OK("disk", "%s has %d of %d MB free", d.Disk, d.Free>>20, d.Total>>20)
	}
}

// catalogue checks the definitions.
func (r *Report) catalogue(s *catalogue.Snapshot) {
	var faults catalogue.Faults
	if errors.As(s.Validate(), &faults) {
		for _, fault := range faults {
			r.Fault("catalogue", catalogue.Faults{fault})
		}
		r.Note("catalogue", "lifthouse export writes the catalogue: correct the faults in that file and apply it")
	}
	accounts := s.Accounts()
	if len(accounts) == 0 {
		r.Note("catalogue", "is empty: declare accounts, websites, goals and campaigns with lifthouse apply -f catalog.yaml")
	}
	for _, a := range accounts {
		r.OK("catalogue", "account %d (%s): websites %d, goals %d, targets %d, campaigns %d, widgets %d",
			a.ID, a.Name, len(a.Websites), len(a.Goals), len(a.Targets), len(a.Campaigns), len(a.Widgets))
		if len(s.Tokens(a.ID)) == 0 {
			r.Note("catalogue", "account %d has no token: create one with lifthouse token create --account %d", a.ID, a.ID)
		}
	}
}
