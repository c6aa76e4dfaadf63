package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lifthouse/cmd/internal/inputs"
	"lifthouse/loadgen/measure"
	"lifthouse/loadgen/report"

	"github.com/spf13/cobra"
)

const reportHelp = `Report writes the benchmark report in Markdown from the results of other commands: one page with
summaries, and a directory with the full tables and charts. The inputs are the --json files of
standard, competitors, growth, bench --ladder, calibrate and calibrate decisions, and texts with --section.

make benchmarks runs all measurements and writes the report.`

// reportOptions has the flags of the command.
type reportOptions struct {
	standard, competitors, growth, calibration, decisions string
	loads, sections                                       []string
	command, revision                                     string
	page, details                                         string
}

func (p *program) reportCommand() *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Write BENCHMARKS.md from the results of other commands",
		Long:  reportHelp,
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			b, err := o.readBenchmarks()
			if err != nil {
				return err
			}
			if err := o.checkOutputs(b); err != nil {
				return usageError{err}
			}
			return b.WriteFiles(o.page, o.details)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.standard, "standard", "", "JSON file of loadgen standard (required)")
	flags.StringVar(&o.competitors, "competitors", "", "JSON file of loadgen competitors (required)")
	flags.StringVar(&o.growth, "growth", "", "JSON file of loadgen growth")
	flags.StringVar(&o.calibration, "calibration", "", "JSON file of loadgen calibrate")
	flags.StringVar(&o.decisions, "decisions", "", "JSON file of loadgen calibrate decisions")
	flags.StringArrayVar(&o.loads, "load", nil, "TITLE=FILE: JSON file of loadgen bench --ladder; can be repeated")
	flags.StringArrayVar(&o.sections, "section", nil, "TITLE=FILE: text file to include as is; can be repeated")
	flags.StringVar(&o.command, "command", "make benchmarks", "command that generates the report, named on the page")
	flags.StringVar(&o.revision, "revision", "", "revision named on the page (default from the build information)")
	flags.StringVarP(&o.page, "output", "o", "", "file for the page, such as BENCHMARKS.md (required)")
	flags.StringVar(&o.details, "details", "docs/benchmarks", "directory for the full tables and the charts")
	return cmd
}

// readBenchmarks reads all inputs. The error lists all problems.
func (o *reportOptions) readBenchmarks() (*report.Benchmarks, error) {
	b := &report.Benchmarks{Command: o.command, Date: time.Now().UTC().Format(time.DateOnly), Machine: measure.ThisMachine()}
	if o.revision != "" {
		b.Machine.Revision = o.revision
	}
	errs := []error{
		readJSON("--standard", o.standard, &b.Insertion),
		readJSON("--competitors", o.competitors, &b.Competitors),
	}
	if o.growth != "" {
		errs = append(errs, readJSON("--growth", o.growth, &b.Growth))
	}
	if o.calibration != "" {
		errs = append(errs, readJSON("--calibration", o.calibration, &b.Calibration))
	}
	if o.decisions != "" {
		errs = append(errs, readJSON("--decisions", o.decisions, &b.Decisions))
	}
	for _, value := range o.loads {
		var load report.Load
		title, path, err := titleAndFile("--load", value)
		if err == nil {
			load.Title = title
			err = readJSON("--load", path, &load.Result)
		}
		b.Loads, errs = append(b.Loads, load), append(errs, err)
	}
	for _, value := range o.sections {
		section, err := readSection(value)
		b.Sections, errs = append(b.Sections, section), append(errs, err)
	}
	if o.page == "" {
		errs = append(errs, usageError{errors.New("missing --output: must be a file such as BENCHMARKS.md")})
	}
	return b, errors.Join(errs...)
}

// checkOutputs returns an error for each file of the report that is an input.
func (o *reportOptions) checkOutputs(b *report.Benchmarks) error {
	var read inputs.Files
	for _, path := range []string{o.standard, o.competitors, o.growth, o.calibration, o.decisions} {
		read.AddPath(path, path)
	}
	for _, value := range slices.Concat(o.loads, o.sections) {
		_, path, _ := strings.Cut(value, "=")
		read.AddPath(path, path)
	}
	errs := []error{read.CheckOutput("--output", o.page, o.page)}
	for _, name := range b.DetailFiles() {
		path := filepath.Join(o.details, name)
		errs = append(errs, read.CheckOutput("--details", path, path))
	}
	return errors.Join(errs...)
}

// readJSON reads a JSON file that another command wrote.
func readJSON(flag, path string, into any) error {
	if path == "" {
		return usageError{fmt.Errorf("missing %s: must be a JSON file", flag)}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %s: %w", flag, path, err)
	}
	return nil
}

// titleAndFile splits a value of the form TITLE=FILE.
func titleAndFile(flag, value string) (title, path string, err error) {
	title, path, found := strings.Cut(value, "=")
	if !found || title == "" || path == "" {
		return "", "", usageError{fmt.Errorf("invalid %s %q: must be TITLE=FILE", flag, value)}
	}
	return title, path, nil
}

func readSection(value string) (report.Section, error) {
	title, path, err := titleAndFile("--section", value)
	if err != nil {
		return report.Section{}, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return report.Section{}, fmt.Errorf("--section: %w", err)
	}
	return report.Section{Title: title, Text: strings.TrimRight(string(text), "\n")}, nil
}
