package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/bounds"
	"lifthouse/cmd/internal/config"
	"lifthouse/cmd/internal/terminal"
	"lifthouse/engine/wording"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"

	"github.com/spf13/cobra"
)

// shownRejects is the maximum number of rejected lines to print.
const shownRejects = 20

// importFlags are the flags of import.
type importFlags struct {
	mapping, format, rejects, asOf string
	dryRun, follow, draft          bool
	website                        int64
}

func (p *program) importCommand() *cobra.Command {
	var o importFlags
	cmd := newCommand("import", func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usageError{fmt.Errorf("%s: no file given; usage: %s", cmd.CommandPath(), cmd.UseLine())}
		}
		return nil
	}, func(cmd *cobra.Command, files []string) error {
		if o.draft {
			return p.draftMapping(cmd, files, o.format)
		}
		return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
			return p.importAll(ctx, s, files, &o)
		})
	})
	cmd.Flags().StringVarP(&o.mapping, "mapping", "m", "",
		"YAML file that maps columns to fields of events, or a shipped mapping: "+
			strings.Join(ingest.FileMappings(), ", "))
	bounds.Var(cmd.Flags(), &o.website, "website", 0, 0, bounds.MaxID,
		"id of the website of events without websiteId; default: the only one")
	cmd.Flags().StringVar(&o.format, "format", "", "csv, ndjson or parquet; default: from the mapping or the file name")
	cmd.Flags().StringVar(&o.asOf, "as-of", "",
		"time of an export of orders, such as 2026-05-08T09:00:00Z: of several states of an order, the latest counts")
	cmd.Flags().StringVar(&o.rejects, "rejects", "",
		"new file for all rejected lines, as JSON lines with file, line and reason")
	cmd.Flags().BoolVar(&o.follow, "follow", false,
		"keep importing files that are added to a directory until interrupted")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "validate the files without storing events")
	cmd.Flags().BoolVar(&o.draft, "draft", false,
		"print a mapping for the columns of a file, with values of each, and import nothing")
	p.timeFlags(cmd)
	completeFlag(cmd, "format", "csv", "ndjson", "parquet")
	return cmd
}

// draftMapping prints the draft of a mapping for a file. It needs no store.
func (p *program) draftMapping(cmd *cobra.Command, files []string, format string) error {
	for _, other := range []string{"mapping", "website", "as-of", "rejects", "follow", "dry-run"} {
		if cmd.Flags().Changed(other) {
			return usageError{fmt.Errorf("--draft only reads a file: omit --%s", other)}
		}
	}
	if len(files) > 1 {
		return usageError{fmt.Errorf("--draft reads one file, not %d", len(files))}
	}
	if err := checkFileFormat(format); err != nil {
		return err
	}
	name := files[0]
	if name != ingest.StandardInput {
		name = p.absolutePath(name)
	}
	text, err := ingest.DraftMapping(cmd.Context(), name, ingest.Options{Format: format, Input: p.stdin})
	if err != nil {
		return err
	}
	_, err = io.WriteString(p.stdout, text)
	return err
}

// checkFileFormat returns an error if a format of files is unknown.
func checkFileFormat(format string) error {
	if format != "" && !slices.Contains([]string{"csv", "ndjson", "parquet"}, format) {
		return usageError{fmt.Errorf("--format %q: must be csv, ndjson or parquet", format)}
	}
	return nil
}

// importAll imports files or directories, and folds what it has imported.
func (p *program) importAll(ctx context.Context, s *app.Store, files []string, o *importFlags) error {
	options, err := p.importOptions(s, o.mapping, o.format, o.website)
	if err != nil {
		return err
	}
	options.DryRun = o.dryRun
	if o.asOf != "" {
		options.Mapping, err = mappingAsOf(options.Mapping, o.asOf)
		if err != nil {
			return err
		}
	}
	if o.follow && options.Mapping != nil && !options.Mapping.GoalsHaveIDs() {
		return usageError{errors.New("--follow: the goals of the mapping need an eventId: exports overlap")}
	}
	i := fileImport{
		program: p, began: time.Now(), store: s, options: options, rejects: json.NewEncoder(io.Discard),
	}
	if o.rejects != "" {
		file, err := p.createOutput("--rejects", o.rejects)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		i.rejects = json.NewEncoder(file)
	}
	if o.follow || slices.ContainsFunc(files, p.isDirectory) {
		err = i.importDirectories(ctx, files, o.mapping, o.follow)
	} else {
		named, unmatched := p.expandPatterns(files)
		if unmatched != nil {
			return unmatched
		}
		for n := 0; n < len(named) && err == nil; n++ {
			_, err = i.importFile(ctx, named[n])
		}
	}
	if err == nil {
		err = i.judgeRejects()
	}
	return errors.Join(err, i.foldImported(ctx))
}

// judgeRejects returns an error if lines were rejected, or could not be written to the --rejects file.
func (i *fileImport) judgeRejects() error {
	if i.unkept != nil {
		return fmt.Errorf("--rejects: %w", i.unkept)
	}
	if i.rejected > shownRejects {
		i.printDiagnostic("%s rejected besides", wording.CountNoun(i.rejected-shownRejects, "line"))
	}
	if i.rejected > 0 {
		return &exitError{exitRejected}
	}
	return nil
}

// expandPatterns returns the named files, with those of patterns that the shell has not expanded.
func (p *program) expandPatterns(arguments []string) (files []string, err error) {
	for _, argument := range arguments {
		matched, invalid := filepath.Glob(p.absolutePath(argument))
		_, missing := os.Stat(p.absolutePath(argument))
		switch {
		case invalid != nil:
			return nil, usageError{fmt.Errorf("%s: %w", argument, invalid)}
		case !strings.ContainsAny(argument, "*?[") || missing == nil:
			matched = []string{argument}
		case len(matched) == 0:
			return nil, usageError{fmt.Errorf("%s: no file matches", argument)}
		}
		files = append(files, matched...)
	}
	return files, nil
}

// mappingAsOf returns a mapping for a file that has the state of its orders at a time.
func mappingAsOf(m *ingest.Mapping, asOf string) (*ingest.Mapping, error) {
	at, err := schema.ParseTime(asOf)
	switch {
	case err != nil:
		return nil, usageError{fmt.Errorf("--as-of %q: must be RFC 3339, such as 2026-05-08T09:00:00Z", asOf)}
	case m == nil:
		return nil, usageError{errors.New("--as-of: needs --mapping")}
	case at.After(time.Now()):
		return nil, usageError{fmt.Errorf("--as-of %q: must not be in the future", asOf)}
	}
	return m.AsOf(at), nil
}

// importOptions returns the options of an import, with its mapping.
func (p *program) importOptions(s *app.Store, mapping, format string, website int64) (ingest.Options, error) {
	options := ingest.Options{
		Format: format, Input: p.stdin, Times: p.importTimes(s.Times), Journal: s.Journal,
		Owns: s.HasWebsite,
	}
	if err := checkFileFormat(format); err != nil {
		return options, err
	}
	if website != 0 || mapping != "" { // a shipped mapping does not name the website
		account, err := accountOr(0, s.Catalogue.Snapshot())
		if err == nil {
			options.WebsiteID, err = websiteOr(website, s.Catalogue.Snapshot().AccountResources(account))
		}
		if err != nil && website != 0 {
			return options, err
		}
	}
	var err error
	switch {
	case mapping == "":
	case slices.Contains(ingest.FileMappings(), mapping):
		options.Mapping, err = ingest.ShippedMapping(mapping)
	default:
		options.Dir = filepath.Dir(p.absolutePath(mapping))
		options.Mapping, err = p.readMapping(mapping)
	}
	return options, err
}

// importTimes returns the accepted times of events: flags of the command replace those of the store.
func (p *program) importTimes(times ingest.Times) ingest.Times {
	for _, own := range p.settings {
		switch {
		case own.Source == config.FromDefault:
		case own.Name == maxEventAge:
			times.MaxAge = p.opening.Times.MaxAge
			times.Now = time.Now
		case own.Name == maxEventSkew:
			times.MaxSkew = p.opening.Times.MaxSkew
			times.Now = time.Now
		}
	}
	return times
}

// readMapping reads a mapping file.
func (p *program) readMapping(path string) (*ingest.Mapping, error) {
	file, err := ingest.OpenFile(p.absolutePath(path))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	m, err := ingest.ReadMapping(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

type fileImport struct {
	*program
	store   *app.Store
	options ingest.Options

	began time.Time // when the command, or a pass of --follow, began
	rows  int64     // accepted since then

	rejects  *json.Encoder // the --rejects file
	rejected int64         // lines of all files
	unkept   error         // of the --rejects file

	mapping string                 // of directories: text of the mapping, or its name
	seen    map[string]fs.FileInfo // files of directories that were imported or skipped, as they were then
}

// foldImported folds the accepted events, so that reports include them. It prints how long that and the import took.
func (i *fileImport) foldImported(ctx context.Context) error {
	if i.options.DryRun || ctx.Err() != nil {
		return nil //nolint:nilerr // the import has returned it
	}
	err := i.showFolding(i.store.Facts, "folding into reports", func() error { return i.store.Facts.FoldAccepted(ctx) })
	if err != nil {
		return fmt.Errorf("the accepted events are stored, but reports do not include all of them yet: %w", err)
	}
	if i.rows > 0 {
		seconds := time.Since(i.began).Seconds()
		i.printLine("reports include all events: %.1f s, %.0f rows/s", seconds, float64(i.rows)/seconds)
	}
	i.rows = 0
	return nil
}

func (i *fileImport) importFile(ctx context.Context, file string) (report ingest.Report, err error) {
	bar := terminal.NewBar(i.stderr, "importing "+filepath.Base(file), "row")
	defer bar.End()
	options := i.options
	options.Progress = func(r ingest.Report) {
		all := int64(0) // of standard input, nobody knows
		if r.TotalBytes > 0 && r.Bytes > 0 {
			all = max(r.Rows, int64(float64(r.Rows)*float64(r.TotalBytes)/float64(r.Bytes)))
		}
		bar.Show(r.Rows, all)
	}
	options.Reject = func(line int64, reason string) {
		if i.unkept == nil {
			i.unkept = i.rejects.Encode(struct {
				File   string `json:"file"`
				Line   int64  `json:"line"`
				Reason string `json:"reason"`
			}{file, line, reason})
		}
		i.rejected++
		if i.rejected <= shownRejects {
			i.printDiagnostic("%s: line %d: %s", file, line, reason)
		}
	}
	names, err := i.store.Writer.Names(ctx)
	if err != nil {
		return report, err
	}
	named := catalogue.NewEventNames(names.KeyOf)
	options.Accepted = named.AddEvents
	report, err = ingest.ImportFile(ctx, i.store.Writer, i.inputPath(file), options)
	if err != nil {
		return report, err
	}
	lines := wording.CountNoun(report.Lines, "line")
	if n := report.NoVisitor; n > 0 {
		lines += fmt.Sprintf(", %s without a visitor left out", wording.CountNoun(n, "event"))
	}
	if options.DryRun {
		i.printLine("%s: dry run: %s, %d of %s rejected; nothing was inserted", file,
			wording.CountNoun(report.Rows, "valid row"), report.Rejected, lines)
	} else {
		i.rows += report.Rows
		i.printLine("%s: %s accepted, %d of %s rejected", file, wording.CountNoun(report.Rows, "row"), report.Rejected,
			lines)
	}
	// Reports do not count events with names that the catalogue does not declare.
	const shown = 10
	undeclared := i.store.Catalogue.Snapshot().UndeclaredNames(named)
	for _, u := range undeclared[:min(len(undeclared), shown)] {
		i.printDiagnostic("%s: warning: %s: %s", file, wording.CountNoun(u.Events, "event"), u.Detail)
	}
	if more := len(undeclared) - shown; more > 0 {
		i.printDiagnostic("%s: warning: %s more that the catalogue does not declare", file,
			wording.CountNoun(more, "name"))
	}
	return report, nil
}

// settleTime is how long a file must be unchanged before it is imported from a directory: it may still be copied.
const settleTime = 10 * time.Second

func (p *program) isDirectory(argument string) bool {
	info, err := os.Stat(p.absolutePath(argument))
	return err == nil && info.IsDir()
}

// importDirectories imports the files of directories and patterns, in the order of their modification. A file whose
// content was imported before is skipped, also under another name. mapping is the path of the mapping, or its name. If
// follow is true, it goes on with files that are added, until the context ends.
func (i *fileImport) importDirectories(ctx context.Context, arguments []string, mapping string, follow bool) error {
	i.mapping = mapping
	i.seen = map[string]fs.FileInfo{}
	if text, err := os.ReadFile(i.absolutePath(mapping)); err == nil { // otherwise a shipped mapping
		i.mapping = string(text)
	}
	unsettled, err := i.importNewFiles(ctx, arguments)
	for tick := time.Tick(settleTime); follow && ctx.Err() == nil; _, err = i.importNewFiles(ctx, arguments) {
		err = errors.Join(err, i.foldImported(ctx))
		if err != nil {
			i.printDiagnostic("%v", err)
		}
		select {
		case <-tick:
			i.began = time.Now()
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

// importNewFiles imports the files that are new and whose content was not imported. It returns the number of those that
// changed too recently.
func (i *fileImport) importNewFiles(ctx context.Context, arguments []string) (unsettled int, err error) {
	files, err := i.listFiles(arguments)
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		before := i.seen[f.path]
		isSameTime := before != nil && before.ModTime().Equal(f.info.ModTime())
		if isSameTime && before.Size() == f.info.Size() {
			continue
		}
		if time.Since(f.info.ModTime()) < settleTime {
			unsettled++
			continue
		}
		i.seen[f.path] = f.info
		if err := i.importOnce(ctx, f.path); err != nil {
			isGone := errors.As(err, new(*os.PathError)) // moved away
			if ctx.Err() != nil || !isGone {
				return unsettled, err
			}
			i.printDiagnostic("%v", err)
		}
	}
	return unsettled, nil
}

// listedFile is a file that the arguments of import name.
type listedFile struct {
	path string
	info fs.FileInfo
}

// listFiles returns the files that match the arguments, and those below directories, in the order of their
// modification.
func (i *fileImport) listFiles(arguments []string) ([]listedFile, error) {
	var files []listedFile
	add := func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, listedFile{path, info})
		}
		return nil
	}
	for _, argument := range arguments {
		matched := []string{i.absolutePath(argument)}
		if !i.isDirectory(argument) {
			var err error
			matched, err = filepath.Glob(matched[0])
			if err != nil {
				return nil, usageError{err}
			}
		}
		for _, path := range matched {
			if err := filepath.WalkDir(path, add); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(files, func(a, b listedFile) int {
		return cmp.Or(a.info.ModTime().Compare(b.info.ModTime()), cmp.Compare(a.path, b.path))
	})
	return slices.CompactFunc(files, func(a, b listedFile) bool { return a.path == b.path }), nil
}

// importOnce imports a file, unless its content was imported before, and records that it was.
func (i *fileImport) importOnce(ctx context.Context, path string) error {
	digest, err := ingest.FileDigest(ctx, path, i.mapping, i.options.WebsiteID)
	if err != nil {
		return err
	}
	imported, err := ingest.IsImported(ctx, i.store.Conn, digest)
	if err != nil || imported {
		return err
	}
	report, err := i.importFile(ctx, path)
	if err != nil || i.options.DryRun {
		return err
	}
	return ingest.RecordFile(ctx, i.store.Conn, digest, path, report.Rows)
}
