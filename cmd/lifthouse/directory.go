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

	"lifthouse/cmd/internal/app"
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

// directory is a directory or a pattern, whose files are imported in the order of their modification. A file whose
// content was imported before is skipped, also under another name.
type directory struct {
	arguments []string
	options   ingest.Options
	mapping   string // text of the mapping, or its name
	rejected  *rejections
	seen      map[string]fs.FileInfo // files that were imported or skipped, as they were then
}

// importDirectories imports the files of directories. mapping is the path of the mapping, or its name. If follow is
// true, it goes on with files that are added, until the context ends.
func (p *program) importDirectories(ctx context.Context, s *app.Store, arguments []string, options ingest.Options,
	mapping string, rejected *rejections, follow bool,
) error {
	d := &directory{arguments, options, mapping, rejected, map[string]fs.FileInfo{}}
	if text, err := os.ReadFile(p.absolutePath(mapping)); err == nil { // otherwise a shipped mapping
		d.mapping = string(text)
	}
	unsettled, err := p.importNewFiles(ctx, s, d)
	for tick := time.Tick(settleTime); follow && ctx.Err() == nil; _, err = p.importNewFiles(ctx, s, d) {
		if err = errors.Join(err, p.foldImported(ctx, s, options.DryRun)); err != nil {
			p.printDiagnostic("%v", err)
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return nil
		}
	}
	if err == nil && unsettled > 0 {
		p.printDiagnostic("%s changed less than %v ago: import again, or use --follow",
			wording.CountNoun(int64(unsettled), "file"), settleTime)
	}
	return err
}

// importNewFiles imports the files that are new, and returns the number of those that changed too recently.
func (p *program) importNewFiles(ctx context.Context, s *app.Store, d *directory) (unsettled int, err error) {
	files, err := p.listFiles(d.arguments)
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		switch before := d.seen[f.path]; {
		case before != nil && before.Size() == f.info.Size() && before.ModTime().Equal(f.info.ModTime()):
			continue
		case time.Since(f.info.ModTime()) < settleTime:
			unsettled++
			continue
		}
		d.seen[f.path] = f.info
		if err := p.importNewFile(ctx, s, f.path, d); err != nil {
			if ctx.Err() != nil || !errors.As(err, new(*os.PathError)) { // otherwise moved away
				return unsettled, err
			}
			p.printDiagnostic("%v", err)
		}
	}
	return unsettled, nil
}

// importNewFile imports a file, unless its content was imported.
func (p *program) importNewFile(ctx context.Context, s *app.Store, path string, d *directory) error {
	digest, err := ingest.FileDigest(ctx, path, d.mapping, d.options.WebsiteID)
	if err != nil {
		return err
	}
	if imported, err := ingest.IsImported(ctx, s.Conn, digest); imported || err != nil {
		return err
	}
	report, err := p.importFile(ctx, s, path, d.options, d.rejected)
	if err != nil || d.options.DryRun {
		return err
	}
	return ingest.RecordFile(ctx, s.Conn, digest, path, report.Rows)
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
