package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"lifthouse/cmd/internal/app"
	"lifthouse/schema/catalogue"

	"github.com/spf13/cobra"
)

func (p *program) applyCommand() *cobra.Command {
	var file string
	var how applying
	cmd := &cobra.Command{
		Use:   "apply -f catalog.yaml",
		Short: "Declare accounts, websites, goals, targets, campaigns and widgets",
		Long: `Apply makes the catalogue say what the file says. The file is checked whole before anything
is changed. What it does not name stays; whether a campaign runs, and since when, is not changed
for one that exists.

Shares that divide the traffic otherwise than before count as changed from now on, and the check
of the sample ratio looks at the visitors since then. Where the shares on record were a mistake
and the traffic never followed them, --correct-shares makes the file's hold from the beginning.

With --prune the file names all there is: what it does not name, accounts too, is listed and, once
you agree, archived. Its events stay, and naming it again brings it back.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return usageError{errors.New("apply: which file? lifthouse apply -f catalog.yaml")}
			}
			return p.withStoreMade(cmd.Context(), func(ctx context.Context, s *app.Store) error {
				return p.apply(ctx, s, file, how)
			})
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "the catalogue, YAML; - for standard input")
	cmd.Flags().BoolVar(&how.dryRun, "dry-run", false, "show what would change and change nothing")
	cmd.Flags().BoolVar(&how.prune, "prune", false, "archive what the file does not name, after asking")
	cmd.Flags().BoolVar(&how.yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&how.correctShares, "correct-shares", false, "the shares in the file correct a mistake: forget the history of shares of what it names")
	return cmd
}

// applying is how a file is applied.
type applying struct{ dryRun, prune, yes, correctShares bool }

func (p *program) apply(ctx context.Context, s *app.Store, path string, how applying) error {
	if how.prune && !how.yes && !how.dryRun && path == "-" {
		return usageError{errors.New("apply: the catalogue comes from standard input, where nobody can be asked: add --yes to --prune")}
	}
	declared, err := p.readCatalogue(ctx, path)
	if err != nil {
		return err
	}
	declared.CorrectShares, declared.Prune = how.correctShares, how.prune
	change := func(dryRun bool) ([]catalogue.Change, error) {
		changes, err := s.Catalogue.Apply(ctx, declared, dryRun)
		var faults catalogue.Faults
		if errors.As(err, &faults) {
			err = fmt.Errorf("%s: nothing was changed:\n%w", path, faults)
		}
		return changes, err
	}
	if how.prune && !how.yes && !how.dryRun {
		if agreed, err := p.agreed(change); !agreed || err != nil {
			return err
		}
	}
	changes, err := change(how.dryRun)
	if err != nil {
		return err
	}
	p.sayChanges(changes, how.dryRun)
	return nil
}

func (p *program) readCatalogue(ctx context.Context, path string) (catalogue.File, error) {
	in := p.in
	if path != "-" {
		file, err := os.Open(p.path(path))
		if err != nil {
			return catalogue.File{}, err
		}
		defer func() { _ = file.Close() }()
		defer context.AfterFunc(ctx, func() { _ = file.Close() })()
		in = file
	}
	declared, err := catalogue.Read(in)
	if err != nil {
		return declared, fmt.Errorf("%s: %w", path, err)
	}
	return declared, nil
}

// agreed lists what would be archived, and asks.
func (p *program) agreed(change func(dryRun bool) ([]catalogue.Change, error)) (bool, error) {
	changes, err := change(true)
	if err != nil {
		return false, err
	}
	archived := slices.DeleteFunc(changes, func(c catalogue.Change) bool { return !c.Archived })
	if len(archived) == 0 {
		return true, nil
	}
	for _, change := range archived {
		p.sayChange(change)
	}
	_, _ = fmt.Fprintf(p.out, "Archive %d that the file does not name? Their events stay. [y/N] ", len(archived))
	answer, err := bufio.NewReader(p.in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
		return true, nil
	}
	p.say("Nothing was changed.")
	return false, nil
}

func (p *program) sayChanges(changes []catalogue.Change, dryRun bool) {
	for _, change := range changes {
		p.sayChange(change)
	}
	switch {
	case len(changes) == 0:
		p.say("Nothing to change: the catalogue says this already.")
	case dryRun:
		p.say("%d would change; nothing was changed (dry run).", len(changes))
	default:
		p.say("%d changed.", len(changes))
	}
}

func (p *program) sayChange(change catalogue.Change) {
	sign, what := "~", "changed"
	switch {
	case change.Created:
		sign, what = "+", "new"
	case change.Archived:
		sign, what = "-", "archived"
	}
	p.say("%s %s %d %q (%s)", sign, change.Kind, change.ID, change.Name, what)
	for _, field := range change.Fields {
		p.say("    %s: %s -> %s", field.Field, orNone(field.Before), orNone(field.After))
	}
	for _, share := range change.Shares {
		p.say("    %5.1f %% %s", 100*share.Share, share.Name)
	}
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
