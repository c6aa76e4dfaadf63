package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"lifthouse/cmd/internal/app"
	"lifthouse/schema/ingest"

	"github.com/spf13/cobra"
)

const forgetHelp = `Forget erases all events of visitors, given by their ids as they were sent, from the store and from
its disk; reports and counters follow. It tells how many there are and asks first. Repeating it is
harmless, and finishes what was cut off.`

func (p *program) forgetCommand() *cobra.Command {
	var visitors []string
	var websites []int64
	var yes bool
	cmd := &cobra.Command{
		Use:   "forget --visitor ID…",
		Short: "Erase visitors",
		Long:  forgetHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(visitors) == 0 {
				return usageError{errors.New("--visitor: want the id of a visitor")}
			}
			return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
				return p.forget(ctx, s.Writer, visitors, websites, yes)
			})
		},
	}
	cmd.Flags().StringArrayVar(&visitors, "visitor", nil, "id of a visitor, as events give it; may be repeated")
	cmd.Flags().Int64SliceVar(&websites, "website", nil, "erase on these websites only")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (p *program) forget(ctx context.Context, w *ingest.Writer, visitors []string, websites []int64, yes bool) error {
	if !yes {
		found, err := w.CountVisitors(ctx, visitors, websites)
		if err != nil {
			return err
		}
		p.say("%d events of %d subjects are stored. Erase them for good? [y/N]", found.Events, found.Subjects)
		if err := p.consent(); err != nil {
			return err
		}
	}
	erased, err := w.Forget(ctx, visitors, websites)
	if err != nil {
		return err
	}
	p.say("%d events of %d subjects erased", erased.Events, erased.Subjects)
	return nil
}

// consent reads the answer to a question that was asked.
func (p *program) consent() error {
	answer, _ := bufio.NewReader(p.in).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return fmt.Errorf("nothing was erased; answer y, or give --yes")
	}
	return nil
}
