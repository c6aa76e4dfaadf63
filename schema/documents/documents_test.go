package documents_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/documents"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

func TestMain(m *testing.M) { schematest.Main(m) }

var (
	campaign = schema.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 12}
	noon     = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
)

// newDocument returns a readout made from a text.
func newDocument(text string) documents.Document {
	return documents.Document{
		AccountID: 1, Subject: campaign, ID: documents.NewID([]byte(text)), Kind: documents.Readout, Look: 3,
		EndedAt: noon.AddDate(0, 0, -2), MadeAt: noon, MadeBy: "Ada", MediaType: documents.HTML,
		Summary: []byte(`{"status":"ship"}`),
	}
}

func TestIDsAreHashesOfTheParts(t *testing.T) {
	ab := documents.NewID([]byte("a"), []byte("b"))
	check.That(t, documents.IsID(ab), "%q is no id", ab)
	check.Equal(t, ab, documents.NewID([]byte("a"), []byte("b")))
	for name, other := range map[string]string{
		"the parts are joined":  documents.NewID([]byte("ab")),
		"a part is empty":       documents.NewID([]byte("a"), nil, []byte("b")),
		"the order is another":  documents.NewID([]byte("b"), []byte("a")),
		"the length is written": documents.NewID([]byte("1:a1:b")),
	} {
		check.That(t, other != ab, name)
	}
	for _, text := range []string{"", ab[1:], ab + "0", strings.ToUpper(ab[:31]) + "A", "../" + ab[3:]} {
		check.Equal(t, documents.IsID(text), false, text)
	}
}

func TestDocumentsAreStoredAndWithdrawn(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	d := documents.New(conn)
	body := bytes.Repeat([]byte("<p>\x00é\\n\n"), 10_000)
	digest := sha256.Sum256(body)
	want := newDocument("a")
	want.Digest = hex.EncodeToString(digest[:])
	want.Size = len(body)

	first, isNew, err := d.AddDocument(t.Context(), newDocument("a"), body)
	must.OK(t, err)
	check.That(t, isNew, "the first one is not new")
	check.That(t, reflect.DeepEqual(first, want), "%+v, want %+v", first, want)
	again := newDocument("a")
	again.MadeAt = noon.Add(-time.Hour)
	stored, isNew, err := d.AddDocument(t.Context(), again, []byte("another body"))
	must.OK(t, err)
	check.Equal(t, isNew, false, "the same document is new")
	check.That(t, reflect.DeepEqual(stored, want), "%+v, want %+v", stored, want)
	got := must.Get(d.ReadBody(t.Context(), &stored))(t)
	check.That(t, bytes.Equal(got, body), "the body has %d bytes, want %d", len(got), len(body))
	ofSite := must.Get(d.ReadDocuments(t.Context(), 1, 2, documents.Readout))(t)
	check.Equal(t, len(ofSite), 0, "documents of another website")
	ofAccount := must.Get(d.ReadDocuments(t.Context(), 2, 0, documents.Readout))(t)
	check.Equal(t, len(ofAccount), 0, "documents of another account")
	for name, of := range map[string][2]int64{"another account": {2, 0}, "another website": {1, 2}} {
		found := must.Get(d.FindDocument(t.Context(), of[0], of[1], documents.Readout, first.ID))(t)
		check.That(t, found == nil, "%s sees the document", name)
		isKnown := must.Get(d.WithdrawReadout(t.Context(), of[0], of[1], first.ID, "Eve"))(t)
		check.Equal(t, isKnown, false, name)
	}

	for _, by := range []string{"Ada", "Bo"} { // the second time, nothing changes
		check.Equal(t, must.Get(d.WithdrawReadout(t.Context(), 1, 1, first.ID, by))(t), true, by)
	}
	withdrawn := must.Get(d.FindDocument(t.Context(), 1, 0, documents.Readout, first.ID))(t)
	must.That(t, withdrawn != nil, "the row is gone")
	must.That(t, withdrawn.WithdrawnAt != nil, "the document stands")
	check.Equal(t, withdrawn.WithdrawnBy, "Ada")
	check.Equal(t, len(withdrawn.Summary), 0, "bytes of the summary")
	_, err = d.ReadBody(t.Context(), withdrawn)
	check.That(t, err != nil, "the body is still read")
	var bytesOfBodies uint64
	must.OK(t, conn.QueryRow(t.Context(), "SELECT sum(length(body)) FROM documents").Scan(&bytesOfBodies))
	check.Equal(t, bytesOfBodies, 0, "bytes of bodies in the table")
	stored, isNew, err = d.AddDocument(t.Context(), newDocument("a"), body)
	must.OK(t, err)
	check.Equal(t, isNew, false, "a withdrawn document is new")
	check.That(t, stored.WithdrawnAt != nil, "a withdrawn document is back")
}

// TestServersStoreADocumentOnce has servers that store the same document at the same time, each with a body of its own.
func TestServersStoreADocumentOnce(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	const servers = 8
	var stored [servers]documents.Document
	var isNew [servers]bool
	var errs [servers]error
	var all sync.WaitGroup
	for i := range servers {
		all.Go(func() {
			of := newDocument("a")
			of.MadeAt = noon.Add(time.Duration(-i) * time.Second)
			stored[i], isNew[i], errs[i] = documents.New(conn).AddDocument(t.Context(), of, []byte{byte('a' + i)})
		})
	}
	all.Wait()
	news := 0
	for i := range servers {
		must.OK(t, errs[i])
		check.Equal(t, stored[i].Digest, stored[0].Digest, "digest of server %d", i)
		if isNew[i] {
			news++
		}
	}
	check.Equal(t, news, 1, "servers that stored the document")
	var rows uint64
	must.OK(t, conn.QueryRow(t.Context(), "SELECT count() FROM documents").Scan(&rows))
	check.Equal(t, rows, 1, "rows")
}

func TestTooManyDocuments(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	d := documents.New(conn)
	last, _, err := d.AddDocument(t.Context(), newDocument("last"), []byte("a"))
	must.OK(t, err)
	must.OK(t, conn.Exec(t.Context(), `INSERT INTO documents
		SELECT * EXCEPT number REPLACE (lower(hex(MD5(toString(number)))) AS document_id)
		FROM documents CROSS JOIN numbers(199) AS copies`))
	_, _, err = d.AddDocument(t.Context(), newDocument("one more"), []byte("a"))
	check.That(t, errors.Is(err, documents.ErrTooMany), "%v", err)
	must.Get(d.WithdrawReadout(t.Context(), 1, 0, last.ID, "Ada"))(t)
	_, _, err = d.AddDocument(t.Context(), newDocument("one more"), []byte("a"))
	must.OK(t, err)
}

// TestCopiedDocuments copies twice, with a withdrawal in between.
func TestCopiedDocuments(t *testing.T) {
	from := schematest.OpenMigrated(t)
	theirs := documents.New(from)
	kept, _, err := theirs.AddDocument(t.Context(), newDocument("kept"), []byte("body"))
	must.OK(t, err)
	taken, _, err := theirs.AddDocument(t.Context(), newDocument("taken back"), []byte("a name"))
	must.OK(t, err)
	to := schematest.OpenMigrated(t)
	ours := documents.New(to)
	check.Equal(t, must.Get(ours.CopyFrom(t.Context(), from, []int64{1, 2}))(t), 2, "documents")
	must.Get(theirs.WithdrawReadout(t.Context(), 1, 0, taken.ID, "Ada"))(t)
	check.Equal(t, must.Get(ours.CopyFrom(t.Context(), from, []int64{1, 2}))(t), 0, "documents of the second time")
	got := must.Get(ours.ReadDocuments(t.Context(), 1, 0, documents.Readout))(t)
	want := must.Get(theirs.ReadDocuments(t.Context(), 1, 0, documents.Readout))(t)
	check.That(t, reflect.DeepEqual(got, want), "%+v, want %+v", got, want)
	check.Equal(t, string(must.Get(ours.ReadBody(t.Context(), &kept))(t)), "body")
	var names uint64
	must.OK(t, to.QueryRow(t.Context(), "SELECT count() FROM documents WHERE body = 'a name'").Scan(&names))
	check.Equal(t, names, 0, "bodies that were withdrawn")
}
