package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/schema"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestImportsEndInReports checks that the facts include the events when an import ends.
func TestImportsEndInReports(t *testing.T) {
	h := newHouse(t)
	h.must("apply", "-f", "testdata/thirty.catalog.yaml")
	h.must("import", "testdata/thirty.ndjson", "--dry-run")
	h.must("import", "testdata/thirty.ndjson")
	of := schema.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 1}
	n := h.store.Facts.SubjectCounters(of).Visitors
	check.That(t, n != 0, "reports do not include the imported events")
}

// TestForgetIsInTheAuditLog erases a visitor: clients that follow results learn of it from the audit log.
func TestForgetIsInTheAuditLog(t *testing.T) {
	h := newHouse(t)
	h.must("apply", "-f", "testdata/thirty.catalog.yaml")
	h.must("import", "testdata/thirty.ndjson")
	h.must("forget", "--visitor", "c1", "--yes")
	_, out, _ := h.run("audit")
	check.Contains(t, out, "visitors forgotten", "the audit log")
}

// TestRestoreKeepsItsBackup restores a backup into the folder of the backup.
func TestRestoreKeepsItsBackup(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, os.Mkdir(filepath.Join(dir, "metadata"), 0o700))
	link := filepath.Join(t.TempDir(), "link")
	must.OK(t, os.Symlink(dir, link))
	for _, store := range []string{dir, link} {
		stderr := capture(t)
		p := &program{
			stdout: stderr.write, stderr: stderr.write, dir: ".",
			args: []string{"restore", dir, "--store", "embedded:" + store}, getenv: func(string) string { return "" },
		}
		code := p.runCommand(t.Context())
		text := stderr.text()
		check.Equal(t, code, exitFailed, "restore into %s: exit %d, %s", store, code, text)
		check.Contains(t, text, store+" has files already", "restore into %s: exit %d, %s", store, code, text)
		check.Equal(t, len(must.Get(os.ReadDir(dir))(t)), 1, "files of the backup")
	}
}

// TestServeMovesTheInboxOn inserts rows into events_inbox like another ClickHouse client, and waits until a report
// counts them.
func TestServeMovesTheInboxOn(t *testing.T) {
	h := newHouse(t)
	h.must("apply", "-f", "testdata/thirty.catalog.yaml")
	h.token = strings.TrimSpace(h.must("token", "create"))
	p := &program{stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv}
	p.rootCommand() // sets the defaults
	p.serving.Listen, p.serving.logLevel = "127.0.0.1:0", "error"
	ctx, stop := context.WithCancel(t.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- p.serveStore(ctx, h.store, func(_ *app.Store, url string) { ready <- url }) }()
	defer func() {
		stop()
		check.OK(t, <-ended)
	}()
	h.url = <-ready
	must.OK(t, h.store.Conn.Exec(t.Context(), `INSERT INTO events_inbox
		(event_id, time, website_id, visitor, event, campaign_id, variation_id) VALUES
		('1', '2026-05-01 12:00:00', 1, 'a', 'view', 1, 0),
		('2', '2026-05-01 12:00:00', 1, 'b', 'view', 1, 1),
		('3', '2026-05-01 12:00:00', 5, 'c', 'view', 1, 1)`))
	visitors := func() int64 { return h.results("/v1/campaigns/1/results").Totals.Visitors }
	for look := time.NewTicker(20 * time.Millisecond); visitors() < 2; <-look.C {
	}
	rejected := ""
	for look := time.NewTicker(20 * time.Millisecond); rejected == ""; <-look.C {
		rejected = h.must("events", "--rejects", "--last", "1", "--json")
	}
	check.Contains(t, rejected, `"websiteId":5,"rejected":{"channel":"inbox","reason":"unknown_website`, "the row of a website that is nowhere is kept as %s", rejected)
	check.Contains(t, rejected, "event_id=3 ", "the row of a website that is nowhere is kept as %s", rejected)
}
