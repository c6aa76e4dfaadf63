package ingest_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

func TestImportOfStreams(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	w := ingest.NewWriter(conn, nil)
	pipe := filepath.Join(t.TempDir(), "pipe.ndjson")
	must.OK(t, syscall.Mkfifo(pipe, 0o600))
	go func() {
		if f, err := os.OpenFile(pipe, os.O_WRONLY, 0); err == nil {
			_, _ = io.WriteString(f, twoEvents)
			_ = f.Close()
		}
	}()
	report, err := ingest.ImportFile(t.Context(), w, pipe, ingest.Options{})
	check.That(t, err == nil && report.Rows == 2, "a pipe: %+v, %v; want 2 rows", report, err)
	report, err = ingest.ImportFile(t.Context(), w, "-", ingest.Options{Input: io.MultiReader(strings.NewReader(twoEvents))})
	stored := count(t, conn)
	check.That(t, err == nil && report.Rows == 2 && stored == 2, "standard input: %+v, %v, %d events; want 2", report, err, stored)

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := ingest.ImportFile(ctx, w, pipe, ingest.Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a pipe without a writer: %v", err)
	}
	silent, end, err := os.Pipe()
	must.OK(t, err)
	defer func() { _, _ = end.Close(), silent.Close() }()
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := ingest.ImportFile(ctx, w, "-", ingest.Options{Input: silent}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a silent standard input: %v", err)
	}
}

func TestImportRejectsPathsOfTheProcess(t *testing.T) {
	w := ingest.NewWriter(schematest.OpenMigrated(t), nil)
	for path, want := range map[string]string{
		"/dev/stdin":        "or - for standard input",
		"/dev/fd/0":         "or - for standard input",
		"/tmp/../dev/fd/0":  "or - for standard input",
		"/proc/self/fd/0":   "or - for standard input",
		t.TempDir():         "is a directory: must be a file",
		"-":                 "there is no standard input",
		"/dev/absent.jsonl": "or - for standard input",
	} {
		_, err := ingest.ImportFile(t.Context(), w, path, ingest.Options{})
		check.That(t, err != nil && strings.Contains(err.Error(), want), "%s: %v, want %q", path, err, want)
	}
}

// TestCompressedFileHasSameIDs imports lines without ids.
func TestCompressedFileHasSameIDs(t *testing.T) {
	plain := strings.NewReplacer(`"eventId":"e1",`, "", `"eventId":"e2",`, "").Replace(twoEvents)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(plain))
	_ = z.Close()
	conn := schematest.OpenMigrated(t)
	w := ingest.NewWriter(conn, nil)
	for _, test := range []struct {
		name, text string
		want       uint64 // events that the store has afterwards
	}{
		{"e.ndjson", plain, 2},
		{"e.ndjson.gz", zipped.String(), 2},
		{"grown.ndjson", plain + "\n", 4},
	} {
		report, err := ingest.ImportFile(t.Context(), w, write(t, test.name, test.text), ingest.Options{})
		stored := count(t, conn)
		check.That(t, err == nil && report.Rows == 2 && stored == test.want, "%s: %+v, %v; %d events, want %d", test.name, report, err, stored, test.want)
	}
}
