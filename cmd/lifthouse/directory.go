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

// importDirectories imports the files of directories and patterns, in the order of their modification. It skips files
// that changed too recently, and those whose content was imported before, also under another name. mapping is the path
// of the mapping, or its name.
func (p *program) importDirectories(ctx context.Context, s *app.Store, arguments []string, options ingest.Options,
	mapping string, rejected *rejections,
) error {
	if text, err := os.ReadFile(p.absolutePath(mapping)); err == nil { // otherwise a shipped mapping
		mapping = string(text)
	}
	files, err := p.listFiles(arguments)
	if err != nil {
		return err
	}
	unsettled := 0
	for _, f := range files {
		if time.Since(f.info.ModTime()) < settleTime {
			unsettled++
			continue
		}
		if err := p.importNewFile(ctx, s, f.path, options, mapping, rejected); err != nil {
			if ctx.Err() != nil || !errors.As(err, new(*os.PathError)) { // otherwise moved away
				return err
			}
			p.printDiagnostic("%v", err)
		}
	}
	if unsettled > 0 {
		p.printDiagnostic("%s changed less than %v ago: import again",
			wording.CountNoun(int64(unsettled), "file"), settleTime)
	}
	return nil
}

// importNewFile imports a file, unless its content was imported. mapping is the text of the mapping, or its name.
func (p *program) importNewFile(ctx context.Context, s *app.Store, path string, options ingest.Options, mapping string,
	rejected *rejections,
) error {
	digest, err := ingest.FileDigest(ctx, path, mapping, options.WebsiteID)
	if err != nil {
		return err
	}
	if imported, err := ingest.IsImported(ctx, s.Conn, digest); imported || err != nil {
		return err
	}
	report, err := p.importFile(ctx, s, path, options, rejected)
	if err != nil || options.DryRun {
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
