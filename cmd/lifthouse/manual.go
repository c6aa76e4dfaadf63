//go:build manual

// Command lifthouse, built with the tag manual, writes the shell completions and man pages of the program into a
// folder. So the released program does not contain the packages that render man pages.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func main() {
	if err := writeManual(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// writeManual takes the folder, and the date of the man pages.
func writeManual(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: go run -tags manual ./cmd/lifthouse DIR DATE, with a date such as "+
			"2026-11-27T00:00:00Z; got %q", args)
	}
	date, err := time.Parse(time.RFC3339, args[1])
	if err != nil {
		return err
	}
	man, completions := filepath.Join(args[0], "man"), filepath.Join(args[0], "completions")
	for _, dir := range []string{man, completions} {
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
			return err
		}
	}
	root := (&program{getenv: func(string) string { return "" }}).rootCommand()
	if err := root.GenBashCompletionFileV2(filepath.Join(completions, "lifthouse.bash"), true); err != nil {
		return err
	}
	if err := root.GenZshCompletionFile(filepath.Join(completions, "_lifthouse")); err != nil {
		return err
	}
	if err := root.GenFishCompletionFile(filepath.Join(completions, "lifthouse.fish"), true); err != nil {
		return err
	}
	root.DisableAutoGenTag = true
	indentExamples(root)
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "Lifthouse", Manual: "Lifthouse", Date: &date},
		man)
}

// indentExamples indents the indented lines of help texts by four spaces, as Markdown requires for verbatim text.
func indentExamples(cmd *cobra.Command) {
	cmd.Long = strings.ReplaceAll(cmd.Long, "\n  ", "\n    ")
	for _, sub := range cmd.Commands() {
		indentExamples(sub)
	}
}
