package engine

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/schema"
)

// versions are those of all subjects' data, as last read.
type versions struct {
	reading sync.Mutex
	failed  atomic.Int64 // when, in Unix nanoseconds
	read    atomic.Pointer[readVersions]
}

type readVersions struct {
	begun time.Time
	of    map[Subject]uint64 // a subject without events has none, which is 0
}

const (
	// versionsHold is how long versions are good for: whoever wants to keep to
	// a second reads them each second.
	versionsHold = 2 * time.Second
	// versionsMayTake is how long reading them may keep an answer waiting.
	versionsMayTake = time.Second
)

// Version is a number that changes whenever what is stored of the subject
// changes: of the same version there is the same report. Versions agree
// between servers of a store. False stands for one that is not known, for the
// store does not say.
func (e *Engine) Version(ctx context.Context, subject Subject) (uint64, bool) {
	read := e.versions.read.Load()
	if read == nil || time.Since(read.begun) > versionsHold {
		if time.Since(time.Unix(0, e.versions.failed.Load())) < versionsMayTake {
			return 0, false
		}
		if err := e.RefreshVersions(ctx); err != nil {
			return 0, false
		}
		read = e.versions.read.Load()
	}
	return read.of[subject], true
}

// RefreshVersions reads the versions as they stand now. Writers of this
// process call it when they have written, so that nobody is told the old
// version after they were told that it is done.
func (e *Engine) RefreshVersions(ctx context.Context) error {
	asked := time.Now()
	v := &e.versions
	v.reading.Lock()
	defer v.reading.Unlock()
	if read := v.read.Load(); read != nil && read.begun.After(asked) {
		return nil // somebody else began after we asked
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), versionsMayTake)
	defer cancel()
	read := &readVersions{begun: time.Now(), of: map[Subject]uint64{}}
	query := &Query{}
	err := query.render("versions.sql", struct{}{})
	if err == nil {
		err = e.store.each(ctx, query, func(row driver.Rows) error {
			var subject Subject
			var kind string
			var version uint64
			err := row.Scan(&subject.WebsiteID, &kind, &subject.ID, &subject.ExperimentID, &version)
			subject.Kind = schema.Subject(kind)
			read.of[subject] = version
			return err
		})
	}
	if err != nil {
		v.failed.Store(time.Now().UnixNano())
		return err
	}
	v.read.Store(read)
	return nil
}

// FollowVersions reads the versions at the given interval until the context
// ends.
func (e *Engine) FollowVersions(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := e.RefreshVersions(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "versions of the data not read", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
