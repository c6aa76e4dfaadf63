package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/bounds"
	"lifthouse/cmd/internal/terminal"
	"lifthouse/schema/ingest"

	"github.com/spf13/cobra"
)

const forgetHelp = `Forget deletes all events of visitors from the store and its disk, and updates reports and counters. Visitors are
given by their ids as sent in events. Forget prints the number of events and asks for confirmation. It can be repeated; a
repetition completes an interrupted deletion.`

func (p *program) forgetCommand() *cobra.Command {
	var visitors []string
	var websites []int64
	var yes bool
	cmd := &cobra.Command{
		Use:   "forget --visitor ID…",
		Short: "Delete all events of visitors",
		Long:  forgetHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(visitors) == 0 {
				return usageError{errors.New("--visitor: must be the id of a visitor")}
			}
			return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
				return p.forgetVisitors(ctx, s.Writer, visitors, websites, yes)
			})
		},
	}
	cmd.Flags().StringArrayVar(&visitors, "visitor", nil, "id of a visitor as in events; can be repeated")
	bounds.IDs(cmd.Flags(), &websites, "website", "ids of websites; default: all websites")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return cmd
}

func (p *program) forgetVisitors(ctx context.Context, w *ingest.Writer, visitors []string, websites []int64, yes bool) error {
	if !yes {
		found, err := w.CountVisitors(ctx, visitors, websites)
		if err != nil {
			return err
		}
		p.printLine("Stored: %s of %s. Delete permanently? [y/N]", terminal.CountWithNoun(found.Events, "event"), terminal.CountWithNoun(found.Subjects, "subject"))
		if err := p.confirmDeletion(); err != nil {
			return err
		}
	}
	erased, err := w.ForgetVisitors(ctx, visitors, websites)
	if err != nil {
		return err
	}
	p.printLine("deleted %s of %s", terminal.CountWithNoun(erased.Events, "event"), terminal.CountWithNoun(erased.Subjects, "subject"))
	return nil
}

// confirmDeletion reads the answer to a confirmation prompt. It returns an error unless
// the answer is yes.
func (p *program) confirmDeletion() error {
	answer, _ := bufio.NewReader(p.stdin).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return fmt.Errorf("nothing was deleted; answer y or use --yes")
	}
	return nil
}
