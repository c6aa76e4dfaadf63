package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"lifthouse/loadgen"

	"github.com/spf13/cobra"
)

const reportHelp = `Report assembles a page of benchmarks, Markdown, from what other commands measured on this machine:
the --json of standard, peers and growth, and for anything else --section "TITLE=FILE", whose text is
shown as it is. make benchmarks runs all of it.`

func (p *program) reportCommand() *cobra.Command {
	var standard, peers, growth, command, revision, out string
	var sections []string
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Assemble BENCHMARKS.md from what was measured",
		Long:  reportHelp,
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			page := loadgen.Benchmarks{Command: command, Date: time.Now().UTC().Format(time.DateOnly), Machine: loadgen.ThisMachine()}
			if revision != "" {
				page.Machine.Revision = revision
			}
			errs := []error{
				readJSON("--standard", standard, &page.Standard),
				readJSON("--peers", peers, &page.Peers),
			}
			if growth != "" {
				errs = append(errs, readJSON("--growth", growth, &page.Growth))
			}
			for _, given := range sections {
				section, err := readSection(given)
				page.Sections, errs = append(page.Sections, section), append(errs, err)
			}
			if out == "" {
				errs = append(errs, usageError{errors.New("-o: want the file to be written, such as BENCHMARKS.md")})
			}
			if err := errors.Join(errs...); err != nil {
				return err
			}
			return writeFile(out, page.Write)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&standard, "standard", "", "file that loadgen standard --json wrote")
	flags.StringVar(&peers, "peers", "", "file that loadgen peers --json wrote")
	flags.StringVar(&growth, "growth", "", "file that loadgen growth --json wrote; none: it is left out")
	flags.StringArrayVar(&sections, "section", nil, "TITLE=FILE of a text to be shown, in the order given")
	flags.StringVar(&command, "command", "make benchmarks", "that makes the page anew")
	flags.StringVar(&revision, "revision", "", "of this program, where it does not know its own")
	flags.StringVarP(&out, "output", "o", "", "file for the page")
	return cmd
}

// readJSON reads a file that another command wrote.
func readJSON(flag, path string, into any) error {
	if path == "" {
		return usageError{fmt.Errorf("%s: want a file", flag)}
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

func readSection(given string) (loadgen.Section, error) {
	title, path, found := strings.Cut(given, "=")
	if !found || title == "" || path == "" {
		return loadgen.Section{}, usageError{fmt.Errorf("--section %q: want TITLE=FILE", given)}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return loadgen.Section{}, fmt.Errorf("--section: %w", err)
	}
	return loadgen.Section{Title: title, Text: strings.TrimRight(string(text), "\n")}, nil
}
