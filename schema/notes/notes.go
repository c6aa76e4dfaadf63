// Package notes stores what people write down about websites, campaigns and experiments. Notes are only added and
// withdrawn; nothing is changed or deleted.
package notes

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"lifthouse/schema"
	"lifthouse/schema/faults"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

//go:embed sql/*.sql
var statementFiles embed.FS

// statements are the files of sql/.
var statements = schema.ReadStatements(statementFiles)

// Kind is the kind of a note.
type Kind string

// The kinds. An annotation has a time or a span, and is shown on charts.
const (
	Plain      Kind = "note"
	Annotation Kind = "annotation"
)

// Limits of notes.
const (
	MaxText     = 2048 // characters
	MaxLink     = 2048 // bytes
	MaxStanding = 1000 // notes of a subject that are not withdrawn
)

// Note is a note. Its subject is of the kind none if it is about the whole website.
type Note struct {
	AccountID   int64
	Subject     schema.Subject
	ID          string
	At          time.Time
	By          string
	Kind        Kind
	StartsAt    *time.Time // of an annotation
	EndsAt      *time.Time // of an annotation; nil: it is about an instant
	Text        string
	Link        string     // empty: none
	WithdrawnAt *time.Time // nil: it stands
	WithdrawnBy string
}

// FindFaults returns what is wrong with the kind, the text, the time and the link of a note.
func (n *Note) FindFaults() faults.List {
	var found faults.Collector
	isAnnotation := n.Kind == Annotation
	found.AddIf(n.Kind != Plain && !isAnnotation, "kind", n.Kind, faults.OneOf(string(Plain), string(Annotation)))
	n.checkText(&found)
	n.checkSpan(&found)
	if detail := faultOfLink(n.Link); detail != "" {
		found.Add("link", faults.Clip(n.Link, maxShown), detail)
	}
	return found.List
}

// maxShown is how many bytes of a wrong value a fault shows.
const maxShown = 100

// checkText checks the text.
func (n *Note) checkText(found *faults.Collector) {
	size := utf8.RuneCountInString(n.Text)
	isControl := func(r rune) bool { return unicode.IsControl(r) && r != '\n' }
	switch {
	case !utf8.ValidString(n.Text):
		found.Add("text", strings.ToValidUTF8(faults.Clip(n.Text, maxShown), "�"), "must be UTF-8")
	case strings.TrimSpace(n.Text) == "":
		found.Add("text", n.Text, fmt.Sprintf("must have 1 to %d characters", MaxText))
	case size > MaxText:
		found.Add("text", faults.Clip(n.Text, maxShown),
			fmt.Sprintf("must have at most %d characters; it has %d", MaxText, size))
	}
	if strings.ContainsFunc(n.Text, isControl) {
		found.Add("text", strings.ToValidUTF8(faults.Clip(n.Text, maxShown), "�"),
			"must have no control characters but newlines")
	}
}

// checkSpan checks the times.
func (n *Note) checkSpan(found *faults.Collector) {
	for _, of := range []struct {
		name string
		at   *time.Time
	}{{"startsAt", n.StartsAt}, {"endsAt", n.EndsAt}} {
		switch {
		case of.at == nil:
		case n.Kind == Plain:
			found.Add(of.name, of.at.Format(time.RFC3339Nano), "a note has no time; use the kind annotation")
		case !schema.IsStorable(*of.at):
			found.Add(of.name, of.at.Format(time.RFC3339Nano), "must be in a year from 1970 to 2199")
		}
	}
	if n.Kind != Annotation {
		return
	}
	switch {
	case n.StartsAt == nil:
		found.AddField("startsAt", "%s", "must be set: an annotation has a time, or a span until endsAt")
	case n.EndsAt != nil && !n.EndsAt.After(*n.StartsAt):
		found.Add("endsAt", n.EndsAt.Format(time.RFC3339Nano), "must be after startsAt, or be omitted")
	}
}

// faultOfLink returns what is wrong with a link; empty: nothing is.
func faultOfLink(link string) string {
	if link == "" {
		return ""
	}
	parsed, err := url.Parse(link)
	isUnclear := err != nil || strings.ContainsFunc(link, func(r rune) bool { return unicode.IsSpace(r) || r < ' ' })
	switch {
	case len(link) > MaxLink:
		return fmt.Sprintf("must have at most %d bytes; it has %d", MaxLink, len(link))
	case isUnclear || parsed.Scheme != "https" || parsed.Hostname() == "":
		return "must be an address such as https://example.com/page, or be omitted"
	case parsed.User != nil:
		return "must have no user name or password"
	}
	return ""
}

// Notes is the table notes of a store.
type Notes struct {
	conn   driver.Conn
	adding sync.Mutex // so that the limit of a subject holds in this process
}

// New returns the notes of a store.
func New(conn driver.Conn) *Notes { return &Notes{conn: conn} }

// ReadNotes returns the notes of an account, also those that were withdrawn. If website is not 0, it returns those of
// this website.
func (n *Notes) ReadNotes(ctx context.Context, account, website int64) ([]Note, error) {
	var all []Note
	err := schema.EachRow(ctx, n.conn, statements["read"], func(row driver.Rows) error {
		var r Note
		var isWithdrawal bool
		s := &r.Subject
		err := row.Scan(&r.AccountID, &s.WebsiteID, (*string)(&s.Kind), &s.ID, &s.ExperimentID, &r.ID, &r.At, &r.By,
			(*string)(&r.Kind), &r.StartsAt, &r.EndsAt, &r.Text, &r.Link, &isWithdrawal)
		if err != nil {
			return err
		}
		r.setUTC()
		switch last := len(all) - 1; {
		case !isWithdrawal:
			all = append(all, r)
		case last >= 0 && all[last].ID == r.ID:
			all[last].WithdrawnAt = &r.At
			all[last].WithdrawnBy = r.By
		}
		return nil
	}, clickhouse.Named("account", account), clickhouse.Named("website", website))
	return all, schema.WrapError(err, "read notes")
}

// setUTC sets the zone of all times.
func (n *Note) setUTC() {
	n.At = n.At.UTC()
	for _, at := range []*time.Time{n.StartsAt, n.EndsAt} {
		if at != nil {
			*at = at.UTC()
		}
	}
}

// AddNote stores a note without faults, and returns it with its id and time. The error is a faults.List with the faults
// that were found before if there are any, or if its subject has too many notes; then nothing is stored.
func (n *Notes) AddNote(ctx context.Context, note Note, found faults.List) (Note, error) {
	n.adding.Lock()
	defer n.adding.Unlock()
	stored, err := n.ReadNotes(ctx, note.AccountID, note.Subject.WebsiteID)
	if err != nil {
		return note, err
	}
	standing := 0
	for i := range stored {
		if stored[i].Subject == note.Subject && stored[i].WithdrawnAt == nil {
			standing++
		}
	}
	if standing >= MaxStanding {
		field, id := fieldOf(note.Subject)
		found = append(found, faults.Fault{
			Name: field, Value: fmt.Sprint(id),
			Detail: fmt.Sprintf("has %d notes, and no more are allowed: withdraw one first", standing),
		})
	}
	if err := found.Err(); err != nil {
		return note, err
	}
	random := make([]byte, 16)
	_, _ = rand.Read(random) // never fails
	note.ID = "note_" + hex.EncodeToString(random)
	note.At = time.Now().UTC().Truncate(time.Millisecond)
	note.roundTimes()
	return note, schema.WrapError(n.insertRows(ctx, []row{{&note, false}}), "write the note")
}

// fieldOf returns the field of a request that names a subject, and its id.
func fieldOf(of schema.Subject) (field string, id int64) {
	switch ids := of.IDs(); {
	case of.Kind == schema.SubjectNone:
		return "websiteId", of.WebsiteID
	case ids.CampaignID != 0:
		return "campaignId", ids.CampaignID
	case ids.ExperimentID != 0:
		return "experimentId", ids.ExperimentID
	default:
		return "widgetId", ids.WidgetID
	}
}

// roundTimes drops what is not stored.
func (n *Note) roundTimes() {
	for _, at := range []**time.Time{&n.StartsAt, &n.EndsAt} {
		if *at != nil {
			*at = new((*at).UTC().Truncate(time.Millisecond))
		}
	}
}

// WithdrawNote withdraws a note of an account, of one of its websites if website is not 0. It reports whether there is
// such a note. If it is withdrawn already, that stays as it is.
func (n *Notes) WithdrawNote(ctx context.Context, account, website int64, id, by string) (found bool, err error) {
	n.adding.Lock()
	defer n.adding.Unlock()
	stored, err := n.ReadNotes(ctx, account, website)
	if err != nil {
		return false, err
	}
	for i := range stored {
		note := &stored[i]
		if note.ID != id {
			continue
		}
		if note.WithdrawnAt != nil {
			return true, nil
		}
		note.WithdrawnAt = new(time.Now().UTC().Truncate(time.Millisecond))
		note.WithdrawnBy = by
		return true, schema.WrapError(n.insertRows(ctx, []row{{note, true}}), "withdraw the note")
	}
	return false, nil
}

// row is a row of a note: the note, or its withdrawal.
type row struct {
	*Note
	isWithdrawal bool
}

func (n *Notes) insertRows(ctx context.Context, rows []row) error {
	return schema.InsertRows(ctx, n.conn, statements["insert"], rows, func(r *row) []any {
		s := &r.Subject
		written := *r.Note
		if r.isWithdrawal {
			written.At = *r.WithdrawnAt
			written.By = r.WithdrawnBy
			written.Text = ""
			written.Link = ""
		}
		return []any{
			r.AccountID, s.WebsiteID, string(s.Kind), s.ID, s.ExperimentID, r.ID, written.At, written.By,
			string(r.Kind), r.StartsAt, r.EndsAt, written.Text, written.Link, r.isWithdrawal,
		}
	})
}

// CopyFrom adds the notes of accounts in another store that this store lacks, and their withdrawals. It returns the
// number of notes that were added.
func (n *Notes) CopyFrom(ctx context.Context, from driver.Conn, accounts []int64) (copied int, err error) {
	for _, account := range accounts {
		theirs, err := New(from).ReadNotes(ctx, account, 0)
		if err != nil {
			return copied, err
		}
		ours, err := n.ReadNotes(ctx, account, 0)
		if err != nil {
			return copied, err
		}
		stored := map[string]*Note{}
		for i := range ours {
			stored[ours[i].ID] = &ours[i]
		}
		var rows []row
		for i := range theirs {
			note := &theirs[i]
			own := stored[note.ID]
			if own == nil {
				rows = append(rows, row{note, false})
				copied++
			}
			isStanding := own == nil || own.WithdrawnAt == nil
			if note.WithdrawnAt != nil && isStanding {
				rows = append(rows, row{note, true})
			}
		}
		if err := n.insertRows(ctx, rows); err != nil {
			return copied, schema.WrapError(err, "copy notes")
		}
	}
	return copied, nil
}
