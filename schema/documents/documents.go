// Package documents stores files that never change: the readouts of campaigns, and pictures. A readout can be
// withdrawn, which deletes its body for good.
package documents

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

//go:embed sql/*.sql
var statementFiles embed.FS

// statements are the files of sql/.
var statements = schema.ReadStatements(statementFiles)

// Kind is the kind of a document.
type Kind string

// The kinds of documents.
const (
	Readout Kind = "readout" // what was known of a campaign or an experiment at one of its looks
	Picture Kind = "picture" // of a variation, or the logo of an account; it has no subject
)

// The media types of readouts and pictures.
const (
	HTML = "text/html"
	JPEG = "image/jpeg"
)

// The maximum numbers of documents that are not withdrawn: of readouts of a subject, and of pictures of an account.
const (
	MaxOfSubject = 200
	MaxPictures  = 2000
)

// The errors of documents that are one too many.
var (
	ErrTooMany         = fmt.Errorf("%d readouts exist, and no more are allowed: withdraw one first", MaxOfSubject)
	ErrTooManyPictures = fmt.Errorf("%d pictures exist, and no more are allowed", MaxPictures)
)

// Document is a stored file without its body.
type Document struct {
	AccountID int64
	Subject   schema.Subject
	ID        string // see NewID
	Kind      Kind
	Look      int       // its number; 0: the document is about all full days
	EndedAt   time.Time // of the look, or of the last full day
	MadeAt    time.Time
	MadeBy    string // empty: the server
	MediaType string
	Summary   []byte // JSON; nil: it was withdrawn
	Digest    string // SHA-256 of the body, in hexadecimal digits
	Size      int    // of the body, in bytes

	WithdrawnAt *time.Time // nil: it was not withdrawn
	WithdrawnBy string
}

// idBytes is the number of bytes of an id.
const idBytes = 16

// NewID returns the id of a document: the first 128 bits of the SHA-256 of all that its body is made from.
func NewID(parts ...[]byte) string {
	digest := sha256.New()
	for _, part := range parts {
		_, _ = fmt.Fprintf(digest, "%d:%s", len(part), part) // never fails
	}
	return hex.EncodeToString(digest.Sum(nil)[:idBytes])
}

var id = regexp.MustCompile(`^[0-9a-f]{32}$`)

// IsID reports whether a text may be the id of a document.
func IsID(text string) bool { return id.MatchString(text) }

// Documents is the table documents of a store.
type Documents struct {
	conn   driver.Conn
	adding sync.Mutex // so that the limit of a subject holds in this process
}

// New returns the documents of a store.
func New(conn driver.Conn) *Documents { return &Documents{conn: conn} }

// ReadDocuments returns the documents of a kind of an account, also those that were withdrawn, in the order in which
// they were made. If website is not 0, it returns those of this website.
func (d *Documents) ReadDocuments(ctx context.Context, account, website int64, kind Kind) ([]Document, error) {
	return d.readDocuments(ctx, account, website, kind, "")
}

// readDocuments reads documents of an account: of a website, or of all if website is 0; of a kind, or of all kinds
// without one; with an id, or all without one.
func (d *Documents) readDocuments(
	ctx context.Context, account, website int64, kind Kind, id string,
) ([]Document, error) {
	var all []Document
	at := map[string]int{}
	err := schema.EachRow(ctx, d.conn, statements["read"], func(row driver.Rows) error {
		var r Document
		var look uint32
		var size uint64
		var summary string
		s := &r.Subject
		err := row.Scan(&r.AccountID, &s.WebsiteID, (*string)(&s.Kind), &s.ID, &s.ExperimentID, &r.ID,
			(*string)(&r.Kind), &look, &r.EndedAt, &r.MadeAt, &r.MadeBy, &r.MediaType, &summary, &r.Digest, &size,
			&r.WithdrawnAt, &r.WithdrawnBy)
		if err != nil {
			return err
		}
		r.Look = int(look)
		r.Size = int(size) //nolint:gosec // a body is in memory
		r.EndedAt = r.EndedAt.UTC()
		r.MadeAt = r.MadeAt.UTC()
		r.Summary = []byte(summary)
		if r.WithdrawnAt != nil {
			r.WithdrawnAt = new(r.WithdrawnAt.UTC())
			r.Summary = nil
		}
		known, has := at[r.ID]
		switch {
		case !has:
			at[r.ID] = len(all)
			all = append(all, r)
		case r.WithdrawnAt != nil: // the row of the document is not deleted yet
			all[known] = r
		}
		return nil
	}, clickhouse.Named("account", account), clickhouse.Named("website", website),
		clickhouse.Named("kind", string(kind)), clickhouse.Named("id", id))
	return all, schema.WrapError(err, "read documents")
}

// FindDocument returns a document of a kind of an account, of one of its websites if website is not 0; nil: there is
// none.
func (d *Documents) FindDocument(
	ctx context.Context, account, website int64, kind Kind, id string,
) (*Document, error) {
	found, err := d.readDocuments(ctx, account, website, kind, id)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// errNoBody means that a document was withdrawn since it was read.
var errNoBody = errors.New("the document has no body any more")

// ReadBody returns the body of a document.
func (d *Documents) ReadBody(ctx context.Context, of *Document) ([]byte, error) {
	found, err := schema.QueryRows(ctx, d.conn, statements["body"],
		func(row driver.Rows, body *string) error { return row.Scan(body) },
		clickhouse.Named("account", of.AccountID), clickhouse.Named("id", of.ID), clickhouse.Named("digest", of.Digest))
	if err == nil && len(found) == 0 {
		err = errNoBody
	}
	if err != nil {
		return nil, fmt.Errorf("read the document %s: %w", of.ID, err)
	}
	return []byte(found[0]), nil
}

// AddDocument stores a document with its body, and returns it as it is stored: if there is a document with its id, that
// one. isNew reports whether there was none. The error is ErrTooMany or ErrTooManyPictures if there are too many.
func (d *Documents) AddDocument(
	ctx context.Context, of Document, body []byte,
) (stored Document, isNew bool, err error) {
	d.adding.Lock()
	defer d.adding.Unlock()
	all, err := d.ReadDocuments(ctx, of.AccountID, of.Subject.WebsiteID, of.Kind)
	if err != nil {
		return of, false, err
	}
	standing := 0
	for i := range all {
		if all[i].ID == of.ID {
			return all[i], false, nil
		}
		if all[i].Subject == of.Subject && all[i].WithdrawnAt == nil {
			standing++
		}
	}
	switch {
	case of.Kind == Picture && standing >= MaxPictures:
		return of, false, ErrTooManyPictures
	case of.Kind == Readout && standing >= MaxOfSubject:
		return of, false, ErrTooMany
	}
	of.MadeAt = of.MadeAt.UTC().Truncate(time.Millisecond)
	of.EndedAt = of.EndedAt.UTC().Truncate(time.Millisecond)
	sum := sha256.Sum256(body)
	of.Digest = hex.EncodeToString(sum[:])
	of.Size = len(body)
	if err := d.insertRow(ctx, &of, body); err != nil {
		return of, false, schema.WrapError(err, "store the document")
	}
	// Another server may have been first.
	found, err := d.FindDocument(ctx, of.AccountID, of.Subject.WebsiteID, of.Kind, of.ID)
	if err != nil || found == nil {
		return of, true, err
	}
	return *found, found.Digest == of.Digest, nil
}

// insertRow stores a row. Of several inserts of the same document, only the first is stored.
func (d *Documents) insertRow(ctx context.Context, of *Document, body []byte) error {
	token := fmt.Sprint(of.AccountID, " ", of.ID)
	if of.WithdrawnAt != nil {
		token += " withdrawn"
	}
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{
		"insert_deduplicate": 1, "insert_deduplication_token": token,
	}))
	return schema.InsertRows(ctx, d.conn, statements["insert"], []Document{*of}, func(r *Document) []any {
		s := &r.Subject
		return []any{
			r.AccountID, s.WebsiteID, string(s.Kind), s.ID, s.ExperimentID, r.ID, string(r.Kind),
			uint32(r.Look), r.EndedAt, r.MadeAt, r.MadeBy, r.MediaType, //nolint:gosec // few looks
			string(r.Summary), r.Digest, uint64(r.Size), string(body), r.WithdrawnAt, r.WithdrawnBy,
		}
	})
}

// WithdrawReadout withdraws a readout of an account, of one of its websites if website is not 0, and deletes its
// body. It reports whether there is such a readout. If it is withdrawn already, that stays as it is.
func (d *Documents) WithdrawReadout(ctx context.Context, account, website int64, id, by string) (bool, error) {
	d.adding.Lock()
	defer d.adding.Unlock()
	found, err := d.FindDocument(ctx, account, website, Readout, id)
	if err != nil || found == nil {
		return false, err
	}
	if found.WithdrawnAt == nil {
		found.WithdrawnAt = new(time.Now().UTC().Truncate(time.Millisecond))
		found.WithdrawnBy = by
		found.Summary = nil
		if err := d.insertRow(ctx, found, nil); err != nil {
			return true, schema.WrapError(err, "withdraw the document")
		}
	}
	return true, d.emptyDocument(ctx, account, id)
}

// emptyDocument deletes the body of a document that is withdrawn.
func (d *Documents) emptyDocument(ctx context.Context, account int64, id string) error {
	err := d.conn.Exec(ctx, statements["empty"], clickhouse.Named("account", account), clickhouse.Named("id", id))
	return schema.WrapError(err, "delete the body of the document")
}

// CopyFrom adds the documents of accounts in another store that this store lacks, and their withdrawals. It returns the
// number of documents that were added.
func (d *Documents) CopyFrom(ctx context.Context, from driver.Conn, accounts []int64) (copied int, err error) {
	other := New(from)
	for _, account := range accounts {
		theirs, err := other.readDocuments(ctx, account, 0, "", "")
		if err != nil {
			return copied, err
		}
		ours, err := d.readDocuments(ctx, account, 0, "", "")
		if err != nil {
			return copied, err
		}
		stored := map[string]*Document{}
		for i := range ours {
			stored[ours[i].ID] = &ours[i]
		}
		for i := range theirs {
			own := stored[theirs[i].ID]
			isKnown := own != nil && (own.WithdrawnAt != nil || theirs[i].WithdrawnAt == nil)
			if isKnown {
				continue
			}
			if err := d.copyDocument(ctx, other, &theirs[i]); err != nil {
				return copied, schema.WrapError(err, "copy documents")
			}
			if own == nil {
				copied++
			}
		}
	}
	return copied, nil
}

// copyDocument adds a document of another store, or its withdrawal.
func (d *Documents) copyDocument(ctx context.Context, from *Documents, of *Document) error {
	if of.WithdrawnAt != nil {
		if err := d.insertRow(ctx, of, nil); err != nil {
			return err
		}
		return d.emptyDocument(ctx, of.AccountID, of.ID)
	}
	body, err := from.ReadBody(ctx, of)
	if err != nil {
		return err
	}
	return d.insertRow(ctx, of, body)
}
