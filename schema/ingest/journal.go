package ingest

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Channel is how an event arrives.
type Channel string

// The channels.
const (
	ChannelImport Channel = "import"
	ChannelHTTP   Channel = "http"
	ChannelInbox  Channel = "inbox"
)

// Reject is a rejected line.
type Reject struct {
	Time      time.Time // time of arrival; zero: now
	WebsiteID int64     // 0: unknown
	Channel   Channel
	File      string // name of the imported file
	Line      int64  // line number from 1; 0: the whole request
	Reason    string
	Text      string // the line, of which the beginning is stored
}

// The maximum number of rejected lines that are stored per write, and the maximum size of their texts in bytes.
const (
	maxRejects    = 300
	maxRejectText = 1 << 10
)

// Journal stores recently rejected lines, which expire after a week. It buffers them in memory until FlushRejects, so a
// sender of many invalid requests causes few inserts.
type Journal struct {
	conn    driver.Conn
	mu      sync.Mutex
	pending []Reject
}

// NewJournal returns the journal of a store.
func NewJournal(conn driver.Conn) *Journal {
	return &Journal{conn: conn}
}

// BufferRejects buffers rejected lines until the buffer is full, and drops further ones. It replaces credentials,
// e-mails and customers in the reasons and texts with "…".
func (r *Journal) BufferRejects(rejects ...Reject) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, reject := range rejects[:min(len(rejects), maxRejects-len(r.pending))] {
		if reject.Time.IsZero() {
			reject.Time = time.Now()
		}
		reason := hideEmails(tokens.ReplaceAllString(rejectText(reject.Reason), "${1}…"))
		text := hideEmails(tokens.ReplaceAllString(rejectText(reject.Text), "${1}…"))
		// In a reason, unquoted text after a name and a colon is part of the message.
		reject.Reason = afterColon.ReplaceAllString(afterEqual.ReplaceAllString(reason, "${1}…"), "${1}…")
		reject.Text = inLines.ReplaceAllString(text, "${1}…")
		r.pending = append(r.pending, reject)
	}
}

// FlushRejects stores the buffered lines. If there is an error, they stay in the buffer.
func (r *Journal) FlushRejects(ctx context.Context) error {
	r.mu.Lock()
	rejects := r.pending
	r.pending = nil
	r.mu.Unlock()
	err := schema.InsertRows(ctx, r.conn, "INSERT INTO rejects (rejected_at, website_id, channel, file, line, reason, "+
		"text)", rejects, func(j *Reject) []any {
		return []any{j.Time.UTC(), j.WebsiteID, string(j.Channel), j.File, j.Line, j.Reason, j.Text}
	})
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.pending = append(rejects, r.pending...)
		r.pending = r.pending[:min(len(r.pending), maxRejects)]
		return fmt.Errorf("store rejected lines: %w", err)
	}
	return nil
}

// FlushPeriodically calls FlushRejects at every interval until the context ends, and once more after that.
func (r *Journal) FlushPeriodically(ctx context.Context, every time.Duration) {
	flush := func(ctx context.Context) error { return r.FlushRejects(context.WithoutCancel(ctx)) }
	schema.Repeat(ctx, every, "write journal of events", flush)
	if err := flush(ctx); err != nil {
		slog.WarnContext(ctx, "write journal of events failed", "err", err)
	}
}

// rejectText returns the beginning of a text, at most maxRejectText bytes.
func rejectText(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxRejectText)], "�")
}

// hideEmails returns a text without the words that are e-mails.
func hideEmails(text string) string { return emails.ReplaceAllString(text, "…") }

// Patterns of the name of a secret, such as password, or of a customer, before a value in JSON, queries and headers,
// and patterns of quoted and unquoted values.
const (
	secretName = `(?i)([a-z0-9_-]*(?:password|passwd|secret|token|authorization|cookie|credential|session_?id|api_?-?key|customer)[a-z0-9_-]*\\?["']?\s*`
	quoted     = `"(?:[^"\\]|\\.)*"?|\\"[^"]*"?`
	unquoted   = `[\[{][^\]}]*|[^\s,;&"'}]+` // a list or an object with all that it has
)

var (
	// API tokens and credentials of headers.
	tokens     = regexp.MustCompile(`\b(lh_|[Bb]earer +|[Bb]asic +)[A-Za-z0-9+/_=.~-]*`)
	emails     = regexp.MustCompile(`[^\s"'=,;:<>(){}\[\]\\]*@[^\s"'=,;:<>(){}\[\]\\]*`)
	inLines    = regexp.MustCompile(secretName + `[:=]\s*)(?:` + quoted + `|` + unquoted + `)`)
	afterEqual = regexp.MustCompile(secretName + `=\s*)(?:` + unquoted + `)`)
	afterColon = regexp.MustCompile(secretName + `:\s*)(?:` + quoted + `)`)
)
