package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lifthouse/engine/wording"
	"lifthouse/schema/ingest"
)

// settleTime is how long a file must be unchanged before it is imported from a directory: it may still be copied.
const settleTime = 10 * time.Second

// isDirectory reports whether an argument of import is a directory.
func (p *program) isDirectory(argument string) bool {
	info, err := os.Stat(p.absolutePath(argument))
	return err == nil && info.IsDir()
}

// importDirectories imports the files of directories and patterns, in the order of their modification. A file whose
// content was imported before is skipped, also under another name. mapping is the path of the mapping, or its name. If
// follow is true, it goes on with files that are added, until the context ends.
func (i *fileImport) importDirectories(ctx context.Context, arguments []string, mapping string, follow bool) error {
	i.mapping, i.seen = mapping, map[string]fs.FileInfo{}
	if text, err := os.ReadFile(i.absolutePath(mapping)); err == nil { // otherwise a shipped mapping
		i.mapping = string(text)
	}
	unsettled, err := i.importNewFiles(ctx, arguments)
	for tick := time.Tick(settleTime); follow && ctx.Err() == nil; _, err = i.importNewFiles(ctx, arguments) {
		if err = errors.Join(err, i.foldImported(ctx)); err != nil {
			i.printDiagnostic("%v", err)
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return nil
		}
	}
	if err == nil && unsettled > 0 {
		i.printDiagnostic("%s changed less than %v ago: import again, or use --follow",
			wording.CountNoun(int64(unsettled), "file"), settleTime)
	}
	return err
}

// importNewFiles imports the files that are new, and returns the number of those that changed too recently.
func (i *fileImport) importNewFiles(ctx context.Context, arguments []string) (unsettled int, err error) {
	files, err := i.listFiles(arguments)
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		switch before := i.seen[f.path]; {
		case before != nil && before.Size() == f.info.Size() && before.ModTime().Equal(f.info.ModTime()):
			continue
		case time.Since(f.info.ModTime()) < settleTime:
			unsettled++
			continue
		}
		i.seen[f.path] = f.info
		if err := i.importNewFile(ctx, f.path); err != nil {
			if ctx.Err() != nil || !errors.As(err, new(*os.PathError)) { // otherwise moved away
				return unsettled, err
			}
			i.printDiagnostic("%v", err)
		}
	}
	return unsettled, nil
}

// importNewFile imports a file, unless its content was imported.
func (i *fileImport) importNewFile(ctx context.Context, path string) error {
	digest, err := ingest.FileDigest(ctx, path, i.mapping, i.options.WebsiteID)
	if err != nil {
		return err
	}
	if imported, err := ingest.IsImported(ctx, i.store.Conn, digest); imported || err != nil {
		return err
	}
	report, err := i.importFile(ctx, path)
	if err != nil || i.options.DryRun {
		return err
	}
	return ingest.RecordFile(ctx, i.store.Conn, digest, path, report.Rows)
}

// listedFile is a file as it was when it was listed.
type listedFile struct {
	path string
	info fs.FileInfo
}

// listFiles returns the files that the arguments name, and those below directories, in the order of their modification.
func (p *program) listFiles(arguments []string) (found []listedFile, err error) {
	add := func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			found = append(found, listedFile{path, info})
		}
		return nil
	}
	for _, argument := range arguments {
		matched := []string{p.absolutePath(argument)}
		if !p.isDirectory(argument) {
			if matched, err = filepath.Glob(matched[0]); err != nil {
				return nil, usageError{err}
			}
		}
		for _, path := range matched {
			if err := filepath.WalkDir(path, add); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(found, func(a, b listedFile) int {
		return cmp.Or(a.info.ModTime().Compare(b.info.ModTime()), cmp.Compare(a.path, b.path))
	})
	return slices.CompactFunc(found, func(a, b listedFile) bool { return a.path == b.path }), nil
}
