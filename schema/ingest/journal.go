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

// Way is a way in which events arrive.
type Way string

// The ways in which events arrive.
const (
	WayImport Way = "import"
	WayHTTP   Way = "http"
	WayInbox  Way = "inbox"
)

// Reject is a rejected line.
type Reject struct {
	Time      time.Time // time of arrival; zero: now
	WebsiteID int64     // 0: unknown
	Way       Way
	File      string // name of the imported file
	Line      int64  // line number from 1; 0: the whole request
	Reason    string
	Text      string // the line, of which the beginning is stored
}

// The maximum number of rejected lines that are stored per write, and the maximum
// size of their texts in bytes.
const (
	maxRejects    = 300
	maxRejectText = 1 << 10
)

// Journal stores recently rejected lines, which expire after a week. Lines are
// buffered in memory until Write, so that a sender of many invalid requests
// causes few inserts.
type Journal struct {
	conn    driver.Conn
	mu      sync.Mutex
	pending []Reject
}

// NewJournal returns the journal of a store.
func NewJournal(conn driver.Conn) *Journal { return &Journal{conn: conn} }

// Keep buffers rejects until the buffer is full; further ones are dropped. It
// removes credentials from the reasons and texts.
func (r *Journal) Keep(rejects ...Reject) {
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

// Write stores the buffered rejects.
func (r *Journal) Write(ctx context.Context) error {
	r.mu.Lock()
	rejects := r.pending
	r.pending = nil
	r.mu.Unlock()
	if len(rejects) == 0 {
		return nil
	}
	batch, err := r.conn.PrepareBatch(ctx, "INSERT INTO rejects (rejected_at, website_id, way, file, line, reason, text)")
	if err != nil {
		return fmt.Errorf("store rejected lines: %w", err)
	}
	defer func() { _ = batch.Close() }()
	for _, j := range rejects {
		if err := batch.Append(j.Time.UTC(), j.WebsiteID, string(j.Way), j.File, j.Line, j.Reason, j.Text); err != nil {
			return fmt.Errorf("store rejected lines: %w", err)
		}
	}
	if err := batch.Send(); err != nil {
		return fmt.Errorf("store rejected lines: %w", err)
	}
	return nil
}

// Follow calls Write at every interval until the context ends, and once more
// after that.
func (r *Journal) Follow(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			ended = true
		}
		if err := r.Write(context.WithoutCancel(ctx)); err != nil {
			slog.WarnContext(ctx, "store rejected lines failed", "err", err)
		}
	}
}

// beginning returns the beginning of a text, at most maxRejectText bytes.
func beginning(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxRejectText)], "�")
}

// Patterns of a secret's name, such as password, before a value in JSON, queries
// and headers, and of quoted and unquoted values.
const (
	secretName = `(?i)([a-z0-9_-]*(?:password|passwd|secret|token|authorization|cookie|credential|session_?id|api_?-?key)[a-z0-9_-]*\\?["']?\s*`
	quoted     = `"(?:[^"\\]|\\.)*"?|\\"[^"]*"?`
	unquoted   = `[^\s,;&"'}]+`
)

var (
	// API tokens and credentials of headers.
	tokens     = regexp.MustCompile(`\b(lh_|[Bb]earer +|[Bb]asic +)[A-Za-z0-9+/_=.~-]*`)
	inLines    = regexp.MustCompile(secretName + `[:=]\s*)(?:` + quoted + `|` + unquoted + `)`)
	afterEqual = regexp.MustCompile(secretName + `=\s*)` + unquoted)
	afterColon = regexp.MustCompile(secretName + `:\s*)(?:` + quoted + `)`)
)

// redactLine replaces credentials in a line by "…".
func redactLine(line string) string {
	return inLines.ReplaceAllString(tokens.ReplaceAllString(line, "${1}…"), "${1}…")
}

// redactReason replaces credentials in a reason by "…". After a name and a colon
// it only replaces quoted values, because other text is the error message.
func redactReason(reason string) string {
	reason = afterEqual.ReplaceAllString(tokens.ReplaceAllString(reason, "${1}…"), "${1}…")
	return afterColon.ReplaceAllString(reason, "${1}…")
}
