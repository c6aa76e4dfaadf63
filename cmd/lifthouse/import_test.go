package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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

// TestRestoreKeepsItsBackup restores a backup into the folder of the backup.
func TestRestoreKeepsItsBackup(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, os.Mkdir(filepath.Join(dir, "metadata"), 0o700))
	link := filepath.Join(t.TempDir(), "link")
	must.OK(t, os.Symlink(dir, link))
	for _, store := range []string{dir, link} {
		stderr := capture(t)
		p := &program{stdout: stderr.write, stderr: stderr.write, dir: ".", args: []string{"restore", dir, "--store", "embedded:" + store}, getenv: func(string) string { return "" }}
		code := p.runCommand(t.Context())
		text := stderr.text()
		check.That(t, code == exitUsage && strings.Contains(text, `--store "`+store+`": is the input`), "restore into %s: exit %d, %s", store, code, text)
		check.Equal(t, len(must.Get(os.ReadDir(dir))(t)), 1, "files of the backup")
	}
}
