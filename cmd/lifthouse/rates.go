package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"lifthouse/cmd/internal/bounds"
	"lifthouse/engine"
	"lifthouse/engine/wording"
	"lifthouse/schema"
	"lifthouse/schema/faults"
	"lifthouse/schema/ingest"

	"github.com/spf13/cobra"
)

func (p *program) ratesImportCommand() *cobra.Command {
	var asJSON bool
	cmd := newCommand("rates-import", oneArg, nil)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return p.onAccount(cmd, func(ctx context.Context, s ownedStore, args []string) error {
		file, err := p.openInput(args[0])
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		defer context.AfterFunc(ctx, func() { _ = file.Close() })()
		rates, err := s.Books.ReadFile(ctx, s.owned.ID, file, time.Now())
		if found, areFaults := errors.AsType[faults.List](err); areFaults {
			return p.refuseFile(args[0], found)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		source := filepath.Base(args[0])
		if args[0] == ingest.StandardInput {
			source = "standard input"
		}
		found, err := s.Engine.ImportRates(ctx, s.Books, s.owned.ID, rates, source)
		if err != nil {
			return err
		}
		if asJSON {
			return p.writeJSON(found)
		}
		p.printImportedRates(&found)
		return nil
	})
}

// refuseFile prints the faults of a file of which nothing was stored.
func (p *program) refuseFile(file string, found faults.List) error {
	for i := range found {
		p.printDiagnostic("%s: %s", file, found[i].String())
	}
	p.printDiagnostic("%s: nothing of the file is stored", file)
	return &exitError{exitRejected}
}

// printImportedRates prints what the rates of a file changed.
func (p *program) printImportedRates(found *engine.ImportedRates) {
	for i := range found.Changed {
		c := &found.Changed[i]
		p.printLine("%s %s: %s -> %s: %s", c.Currency, c.Date, c.Before, c.Now, refolded(c.Orders, c.Visitors, c.Looks))
	}
	if found.Others > 0 {
		p.printLine("and %s more", wording.CountNoun(int64(found.Others), "changed rate"))
	}
	changed := len(found.Imported.Changed)
	p.printLine("%s new, %s changed, %s as before: %s", wording.CountNoun(int64(found.New), "rate"),
		wording.FormatCount(int64(changed)), wording.FormatCount(int64(found.Same)),
		refolded(found.Orders, found.Visitors, found.Looks))
}

// refolded says what is folded again.
func refolded(orders, visitors int64, looks int) string {
	if orders == 0 {
		return "no order is folded again"
	}
	verb := "are"
	if orders == 1 {
		verb = "is"
	}
	stay := "stay"
	if looks == 1 {
		stay = "stays"
	}
	return fmt.Sprintf("%s of %s %s folded again; %s %s", wording.CountNoun(orders, "order"),
		wording.CountNoun(visitors, "visitor"), verb, wording.CountNoun(int64(looks), "recorded look"), stay)
}

func (p *program) ratesListCommand() *cobra.Command {
	var currency string
	var limit int
	var asJSON bool
	cmd := newCommand("rates-list", noArgs, nil)
	flags := cmd.Flags()
	flags.StringVar(&currency, "currency", "",
		"print the rates of this currency, such as JPY, also those that were corrected")
	bounds.Var(flags, &limit, "limit", 100, 1, 1_000_000, "maximum number of rates of the currency")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		given := currency
		currency = strings.ToUpper(given)
		if given != "" && !schema.IsCurrency(currency) {
			return usageError{fmt.Errorf("--currency %q: must be a code of ISO 4217 such as JPY", given)}
		}
		return nil
	}
	return p.onAccount(cmd, func(ctx context.Context, s ownedStore, _ []string) error {
		list, err := s.Books.ListRates(ctx, s.owned.ID, currency, limit)
		switch {
		case err != nil:
			return err
		case asJSON:
			return p.writeJSON(list)
		}
		if currency != "" {
			rows := [][]any{{"DATE", "RATE", "DECLARED", "SOURCE"}}
			for _, r := range list.Rates {
				rows = append(rows, []any{
					r.Date, fmt.Sprintf("%s %s for 1 %s", r.Rate, currency, list.Base),
					r.DeclaredAt.Format(time.RFC3339), r.Source,
				})
			}
			return p.printList(rows, "There are no rates of %s.", currency)
		}
		rows := [][]any{{"CURRENCY", "DAYS", "FROM", "TO", "LATEST", "SOURCE"}}
		for i := range list.Currencies {
			c := &list.Currencies[i]
			rows = append(rows, []any{
				c.Currency, c.Days, c.First, c.Date, fmt.Sprintf("%s %s for 1 %s", c.Rate, c.Currency, list.Base),
				c.Source,
			})
		}
		return p.printList(rows, "There are no rates.")
	})
}
