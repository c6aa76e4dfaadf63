package ingest

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Way is how an event comes in.
type Way string

// The ways in.
const (
	WayImport Way = "import"
	WayHTTP   Way = "http"
	WayInbox  Way = "inbox"
)

// Reject is a line that was not taken.
type Reject struct {
	Time      time.Time // when it came; zero: now
	WebsiteID int64     // 0: unknown
	Way       Way
	File      string // that was imported
	Line      int64  // from 1; 0: all that came with it
	Reason    string
	Text      string // of the line; its beginning is kept
}

// Of the lines that are rejected between two writes so many are kept, and of
// each so many bytes.
const (
	maxRejects    = 300
	maxRejectText = 1 << 10
)

// Rejects keeps the last lines that were not taken, for a week. What it is
// given it holds in memory until it is told to write: a sender that is wrong
// in every request costs a few inserts a second at most.
type Rejects struct {
	conn    driver.Conn
	mu      sync.Mutex
	pending []Reject
}

// NewRejects returns the rejects of a store.
func NewRejects(conn driver.Conn) *Rejects { return &Rejects{conn: conn} }

// Keep takes rejects, as long as there is room: the first ones tell what is
// wrong.
func (r *Rejects) Keep(rejects ...Reject) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, reject := range rejects[:min(len(rejects), maxRejects-len(r.pending))] {
		if reject.Time.IsZero() {
			reject.Time = time.Now()
		}
		reject.Reason, reject.Text = redactReason(beginning(reject.Reason)), redactLine(beginning(reject.Text))
		r.pending = append(r.pending, reject)
	}
}

// Write stores what was kept.
func (r *Rejects) Write(ctx context.Context) error {
	r.mu.Lock()
	rejects := r.pending
	r.pending = nil
	r.mu.Unlock()
	if len(rejects) == 0 {
		return nil
	}
	batch, err := r.conn.PrepareBatch(ctx, "INSERT INTO rejects (rejected_at, website_id, way, file, line, reason, text)")
	if err != nil {
		return fmt.Errorf("keep rejects: %w", err)
	}
	defer func() { _ = batch.Close() }()
	for _, j := range rejects {
		if err := batch.Append(j.Time.UTC(), j.WebsiteID, string(j.Way), j.File, j.Line, j.Reason, j.Text); err != nil {
			return fmt.Errorf("keep rejects: %w", err)
		}
	}
	if err := batch.Send(); err != nil {
		return fmt.Errorf("keep rejects: %w", err)
	}
	return nil
}

// Follow writes at every interval until the context ends, and once more then.
func (r *Rejects) Follow(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			ended = true
		}
		if err := r.Write(context.WithoutCancel(ctx)); err != nil {
			slog.WarnContext(ctx, "rejected lines are not kept", "error", err)
		}
	}
}

// beginning is as much of a text as is kept.
func beginning(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxRejectText)], "�")
}

// A name such as password in front of a value, as JSON, queries and headers
// have it; and values, with quotes and without.
const (
	secretName = `(?i)([a-z0-9_-]*(?:password|passwd|secret|token|authorization|cookie|credential|session_?id|api_?-?key)[a-z0-9_-]*\\?["']?\s*`
	quoted     = `"(?:[^"\\]|\\.)*"?|\\"[^"]*"?`
	unquoted   = `[^\s,;&"'}]+`
)

var (
	// Tokens of ours, and those of headers.
	tokens     = regexp.MustCompile(`\b(lh_|[Bb]earer +|[Bb]asic +)[A-Za-z0-9+/_=.~-]*`)
	inLines    = regexp.MustCompile(secretName + `[:=]\s*)(?:` + quoted + `|` + unquoted + `)`)
	afterEqual = regexp.MustCompile(secretName + `=\s*)` + unquoted)
	afterColon = regexp.MustCompile(secretName + `:\s*)(?:` + quoted + `)`)
)

// redactLine leaves out of a line what looks like one.
func redactLine(line string) string {
	return inLines.ReplaceAllString(tokens.ReplaceAllString(line, "${1}…"), "${1}…")
}

// toldWithoutSecrets does so with a reason, in which a name is followed by what
// is wrong with it: only quoted values are the line's.
func redactReason(reason string) string {
	reason = afterEqual.ReplaceAllString(tokens.ReplaceAllString(reason, "${1}…"), "${1}…")
	return afterColon.ReplaceAllString(reason, "${1}…")
}
