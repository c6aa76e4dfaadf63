package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"lifthouse/cmd/internal/bounds"
	"lifthouse/engine"
	"lifthouse/engine/query"
	"lifthouse/engine/readout"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/documents"
	"lifthouse/schema/faults"

	"github.com/spf13/cobra"
)

// readoutOptions are the flags of readout.
type readoutOptions struct {
	website       int64
	look          int
	text          string
	out, withdraw string
}

func (p *program) readoutCommand() *cobra.Command {
	var o readoutOptions
	cmd := newCommand("readout", func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("withdraw") {
			return subjectArgs(cmd, args)
		}
		return noArgs(cmd, args)
	}, nil)
	flags := cmd.Flags()
	bounds.Var(flags, &o.website, "website", 0, 0, bounds.MaxID, "id of the website; 0: any")
	bounds.Var(flags, &o.look, "look", 0, 0, 10_000, "number of the look; 0: the one that decided, or else the last")
	flags.StringVar(&o.text, "text", "", "comment; blank lines separate paragraphs")
	flags.StringVar(&o.out, "out", "", "file to which the readout is also written")
	flags.StringVar(&o.withdraw, "withdraw", "", "`id` of a readout whose page to delete for good")
	p.publicURLFlag(flags)
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.checkFlags(cmd); err != nil {
			return usageError{err}
		}
		return nil
	}
	return p.onAccount(cmd, func(ctx context.Context, s ownedStore, args []string) error {
		if o.withdraw != "" {
			found, err := s.Documents.WithdrawReadout(ctx, s.owned.ID, o.website, o.withdraw, catalogue.AuthorOf(ctx))
			if err == nil && !found {
				err = fmt.Errorf("readout: %w", noReadout(o.withdraw))
			}
			return err
		}
		return p.makeReadout(ctx, s, args, &o)
	})
}

// noReadout says that there is no readout with an id.
func noReadout(id string) error {
	return fmt.Errorf("no readout %q; lifthouse log --entry readout --json prints the ids", id)
}

// checkFlags returns all errors of the flags.
func (o *readoutOptions) checkFlags(cmd *cobra.Command) error {
	var found faults.Collector
	asked := readout.Asked{Text: o.text}
	for _, fault := range asked.FindFaults() {
		found.Add("--"+fault.Name, fault.Value, fault.Detail)
	}
	if o.withdraw == "" {
		return found.List.Err()
	}
	for _, name := range []string{"look", "text", "out"} {
		found.AddIf(cmd.Flags().Changed(name), "--"+name, cmd.Flags().Lookup(name).Value.String(),
			"is not valid with --withdraw")
	}
	return found.List.Err()
}

// makeReadout makes a readout, prints its address and writes it to a file.
func (p *program) makeReadout(ctx context.Context, s ownedStore, args []string, o *readoutOptions) error {
	subject, err := findSubject(s, "readout", args, o.website)
	if err != nil {
		return err
	}
	if err := foldEvents(ctx, s.Store); err != nil {
		return err
	}
	maker := s.Readouts(buildVersion(), p.publicURL())
	asked := readout.Asked{Text: o.text, By: catalogue.AuthorOf(ctx)}
	if o.look > 0 {
		asked.Look = &o.look
	}
	made, isNew, err := maker.MakeReadout(ctx, s.owned, subject, asked)
	invalid, isInvalid := errors.AsType[*query.InvalidError](err)
	switch {
	case isInvalid:
		f := invalid.Faults[0]
		return usageError{fmt.Errorf("readout: --%s %s: %s", f.Name, f.Value, f.Detail)}
	case errors.Is(err, engine.ErrNothingToCompare), errors.Is(err, documents.ErrTooMany):
		return fmt.Errorf("readout: %w", err)
	case err != nil:
		return err
	}
	if !isNew {
		p.printDiagnostic("the same readout was made on %s", made.MadeAt.Format(time.DateOnly))
	}
	p.printLine("%s", maker.Address(made.ID))
	if o.out == "" {
		return nil
	}
	body, err := s.Documents.ReadBody(ctx, &made)
	if err != nil {
		return err
	}
	return replaceFile(p.absolutePath(o.out), func(file io.Writer) error {
		_, err := file.Write(body)
		return err
	})
}
