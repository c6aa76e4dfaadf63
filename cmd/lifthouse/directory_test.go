package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestImportOfADirectory imports a directory again and again, while files are added, copied, moved, and changed.
func TestImportOfADirectory(t *testing.T) {
	h, dir := newHouse(t), t.TempDir()
	in := filepath.Join(dir, "in")
	must.OK(t, os.WriteFile(filepath.Join(dir, "c.yaml"),
		[]byte("accounts: [{id: 1, name: Shop, websites: [{id: 1, domain: shop.example.com}]}]"), 0o600))
	h.must("apply", "-f", filepath.Join(dir, "c.yaml"))
	must.OK(t, os.MkdirAll(filepath.Join(in, "2026-05"), 0o700))
	line := func(id string) string {
		return fmt.Sprintf(`{"anonymousId":"a%s","messageId":"m%[1]s","event":"Signed Up","timestamp":"2026-05-01T12:00:00Z"}`+"\n", id)
	}
	put := func(name, text string, age time.Duration) {
		t.Helper()
		path := filepath.Join(in, name)
		must.OK(t, os.WriteFile(path, []byte(text), 0o600))
		at := time.Now().Add(-age)
		must.OK(t, os.Chtimes(path, at, at))
	}
	files := func(text string) (names []string) {
		for line := range strings.Lines(text) {
			if name, _, is := strings.Cut(line, ": "); is && strings.Contains(line, "accepted") {
				names = append(names, filepath.Base(name))
			}
		}
		return names
	}
	put("2026-05/b.ndjson", line("1")+line("2"), time.Hour)
	put("a.ndjson", line("3"), time.Minute)
	put("new.ndjson", line("4"), 0)
	check.Equal(t, fmt.Sprint(files(h.must("import", in, "-m", "segment"))), "[b.ndjson a.ndjson]", "first")
	check.Equal(t, fmt.Sprint(files(h.must("import", in, "-m", "segment"))), "[]", "again")

	must.OK(t, os.Rename(filepath.Join(in, "a.ndjson"), filepath.Join(in, "moved.ndjson")))
	put("copy.ndjson", line("3"), 30*time.Minute)
	put("2026-05/b.ndjson", line("1")+line("2")+line("5"), time.Hour) // exported again, with one more
	put("new.ndjson", line("4"), time.Minute)
	check.Equal(t, fmt.Sprint(files(h.must("import", in+"/*", in, "-m", "segment"))),
		"[b.ndjson new.ndjson]", "changed")
	check.Equal(t, fmt.Sprint(files(h.must("import", in, "-m", "rudderstack"))), "[b.ndjson copy.ndjson new.ndjson]",
		"with another mapping")
	var goals uint64
	must.OK(t, h.store.Conn.QueryRow(t.Context(), "SELECT count() FROM events FINAL").Scan(&goals))
	check.Equal(t, goals, 5, "events")

	must.OK(t, os.WriteFile(filepath.Join(dir, "m.yaml"),
		[]byte("fields: {visitor: v, time: t, event: {value: goal}, goalId: {value: 1}}"), 0o600))
	code, _, complaints := h.run("import", in, "--follow", "-m", filepath.Join(dir, "m.yaml"))
	check.That(t, code == exitUsage && strings.Contains(complaints, "need an eventId"), "--follow without ids: exit %d, %s", code, complaints)
}
