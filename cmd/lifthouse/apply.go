package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"lifthouse/schema/catalogue"

	"github.com/spf13/cobra"
)

func (p *program) applyCommand() *cobra.Command {
	var file string
	var dryRun, correctShares bool
	cmd := &cobra.Command{
		Use:   "apply -f catalog.yaml",
		Short: "Declare accounts, websites, goals, targets, campaigns and widgets",
		Long: `Apply makes the catalogue say what the file says. The file is checked whole before anything
is changed. What it does not name stays; whether a campaign runs, and since when, is not changed
for one that exists.

Shares that divide the traffic otherwise than before count as changed from now on, and the check
of the sample ratio looks at the visitors since then. Where the shares on record were a mistake
and the traffic never followed them, --correct-shares makes the file's hold from the beginning.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return usageError{errors.New("apply: which file? lifthouse apply -f catalog.yaml")}
			}
			return p.withStore(cmd.Context(), func(ctx context.Context, s *store) error {
				return p.apply(ctx, s, file, dryRun, correctShares)
			})
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "the catalogue, YAML; - for standard input")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what would change and change nothing")
	cmd.Flags().BoolVar(&correctShares, "correct-shares", false, "the shares in the file correct a mistake: forget the history of shares of what it names")
	return cmd
}

func (p *program) apply(ctx context.Context, s *store, path string, dryRun, correctShares bool) error {
	in := p.in
	if path != "-" {
		file, err := os.Open(p.path(path))
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		defer context.AfterFunc(ctx, func() { _ = file.Close() })()
		in = file
	}
	declared, err := catalogue.Read(in)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	declared.CorrectShares = correctShares
	changes, err := s.catalogue.Apply(ctx, declared, dryRun)
	var faults catalogue.Faults
	if errors.As(err, &faults) {
		return fmt.Errorf("%s: nothing was changed:\n%w", path, faults)
	}
	if err != nil {
		return err
	}
	p.sayChanges(changes, dryRun)
	return nil
}

func (p *program) sayChanges(changes []catalogue.Change, dryRun bool) {
	for _, change := range changes {
		sign, what := "~", "changed"
		if change.Created {
			sign, what = "+", "new"
		}
		p.say("%s %s %d %q (%s)", sign, change.Kind, change.ID, change.Name, what)
		for _, field := range change.Fields {
			p.say("    %s: %s -> %s", field.Field, orNone(field.Before), orNone(field.After))
		}
		for _, share := range change.Shares {
			p.say("    %5.1f %% %s", 100*share.Share, share.Name)
		}
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

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
