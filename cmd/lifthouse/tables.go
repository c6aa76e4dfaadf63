package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lifthouse/cmd/internal/bounds"
	"lifthouse/cmd/internal/terminal"
	"lifthouse/engine/query"
	"lifthouse/engine/tables"
	"lifthouse/schema/faults"

	"github.com/spf13/cobra"
)

// tablesOptions are the flags of tables.
type tablesOptions struct {
	out, format, since, url string
	website                 int64
	views                   bool
}

// writtenTables is the content of tables.json.
type writtenTables struct {
	Contract int              `json:"contract"`
	Release  string           `json:"release"`
	AsOf     time.Time        `json:"asOf"`
	Rows     map[string]int64 `json:"rows"` // by file
}

func (p *program) tablesCommand() *cobra.Command {
	var o tablesOptions
	cmd := newCommand("tables", noArgs, nil)
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.checkFlags(cmd); err != nil {
			return usageError{err}
		}
		return nil
	}
	flags := cmd.Flags()
	flags.StringVar(&o.out, "out", "", "directory of the files")
	flags.StringVar(&o.format, "format", string(tables.Parquet), "parquet or csv")
	flags.StringVar(&o.since, "since", "",
		"only rows that have changed since this instant, such as asOf of an earlier tables.json")
	bounds.Var(flags, &o.website, "website", 0, 0, bounds.MaxID, "id of the website; 0: all")
	flags.BoolVar(&o.views, "views", false, "print views of the tables for a ClickHouse server instead")
	flags.StringVar(&o.url, "url", "", "address of the Lifthouse server that the views read")
	completeFlag(cmd, "format", string(tables.Parquet), string(tables.CSV))
	p.onAccount(cmd, func(ctx context.Context, s ownedStore, _ []string) error {
		return p.writeTables(ctx, s, &o)
	})
	onStore := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if o.views { // without a store
			_, err := p.stdout.WriteString(tables.Views(strings.TrimSuffix(o.url, "/")))
			return err
		}
		return onStore(cmd, args)
	}
	return cmd
}

// checkFlags returns all errors of the flags.
func (o *tablesOptions) checkFlags(cmd *cobra.Command) error {
	var found faults.Collector
	given := cmd.Flags().Changed
	found.AddIf(o.format != string(tables.Parquet) && o.format != string(tables.CSV), "--format", o.format,
		faults.OneOf(string(tables.Parquet), string(tables.CSV)))
	switch {
	case o.views:
		found.AddIf(!isPublicURL(o.url), "--url", o.url,
			"must be the address of the server, such as https://results.example.com")
		for _, name := range []string{"out", "format", "since", "website"} {
			found.AddIf(given(name), "--"+name, cmd.Flags().Lookup(name).Value.String(), "is not valid with --views")
		}
	default:
		found.AddIf(o.out == "", "--out", o.out, "must be a directory, or use --views")
		found.AddIf(given("url"), "--url", o.url, "is valid only with --views")
	}
	if _, err := o.parseSince(time.Now()); err != nil {
		found.Add("--since", o.since, err.Error())
	}
	return found.List.Err()
}

// parseSince returns the time of --since; zero: any time.
func (o *tablesOptions) parseSince(now time.Time) (time.Time, error) {
	if o.since == "" {
		return time.Time{}, nil
	}
	return query.ParseSince(o.since, now)
}

// writeTables writes all tables to files, and then what they are to tables.json.
func (p *program) writeTables(ctx context.Context, s ownedStore, o *tablesOptions) error {
	if o.website != 0 {
		if _, err := websiteOr(o.website, s.owned); err != nil {
			return err
		}
	}
	dir := p.absolutePath(o.out)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // the files are for other programs
		return err
	}
	if err := foldEvents(ctx, s.Store); err != nil {
		return err
	}
	since, err := o.parseSince(time.Now())
	if err != nil {
		return err
	}
	written := writtenTables{
		Contract: tables.Contract, Release: buildVersion(), AsOf: s.Engine.AsOf(time.Now()), Rows: map[string]int64{},
	}
	asked := query.Table{WebsiteID: o.website, Since: since, Attributes: []string{query.UsualAttribute}}
	bar := terminal.NewBar(p.stderr, "writing", "table")
	defer bar.End()
	for i := range tables.All {
		table := &tables.All[i]
		bar.Show(int64(i), int64(len(tables.All)))
		name := table.Name + "." + o.format
		err := replaceFile(filepath.Join(dir, name), func(file io.Writer) error {
			found, err := s.Tables().OpenTable(ctx, table, s.owned, asked)
			if err != nil {
				return err
			}
			if found.IsStale {
				p.printDiagnostic("%s lacks accepted events that wait to be folded", name)
			}
			written.Rows[name], err = found.WriteFile(ctx, file, tables.Format(o.format))
			return err
		})
		if err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		p.printLine("%s: %d rows", name, written.Rows[name])
	}
	return replaceFile(filepath.Join(dir, "tables.json"), func(file io.Writer) error {
		encoder := json.NewEncoder(file)
		encoder.SetIndent("", "  ")
		return encoder.Encode(written)
	})
}

// replaceFile writes a file beside the one with a path, and then gives it this path. So readers see the whole file
// before or the whole new one. If writing fails, no file is left.
func replaceFile(path string, write func(io.Writer) error) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	err = write(file)
	err = errors.Join(err, file.Chmod(0o644), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}
