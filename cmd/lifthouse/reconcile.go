package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"lifthouse/cmd/internal/terminal"
	"lifthouse/engine/query"
	"lifthouse/engine/reconcile"
	"lifthouse/engine/wording"
	"lifthouse/schema"
	"lifthouse/schema/ingest"

	"github.com/spf13/cobra"
)

func (p *program) reconcileCommand() *cobra.Command {
	var mapping, format, orderRows string
	var asJSON bool
	cmd := newCommand("reconcile", func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usageError{errors.New("reconcile: needs a file of orders and a campaign, such as campaign 12")}
		}
		if args[0] == ingest.StandardInput && orderRows != "" {
			return usageError{errors.New("--rows: reads the orders twice, so they must be in a file")}
		}
		return subjectArgs(cmd, args[1:])
	}, nil)
	flags := cmd.Flags()
	flags.String("goal", "", "id or key of the goal; default: the primary goal")
	flags.String("from", "", "first day of the orders, such as 2026-05-01")
	flags.String("to", "", "last day of the orders")
	flags.StringVarP(&mapping, "mapping", "m", "", "mapping of the file, as for import")
	flags.StringVar(&format, "format", "", "csv, ndjson or parquet; default: from the mapping or the file name")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	flags.StringVar(&orderRows, "rows", "", "new CSV file with the line of each order")
	return p.onAccount(cmd, func(ctx context.Context, s ownedStore, args []string) error {
		request, err := parseRequest(cmd, args[1:], query.ParseVisitors, s.owned.FindID)
		if err != nil {
			return usageError{err}
		}
		request.AccountID = s.owned.ID
		compared, website, err := reconciledReport(ctx, s, request)
		if err != nil {
			return err
		}
		options, err := p.importOptions(s.Store, mapping, format, website)
		if err != nil {
			return err
		}
		export := p.inputPath(args[0])
		err = terminal.ShowWork(p.stderr, "comparing "+filepath.Base(export), "", terminal.Unknown,
			func() error { return compareOrders(ctx, s, export, options, website, compared) })
		if err != nil {
			return err
		}
		if orderRows != "" {
			if err := p.writeOrderRows(ctx, orderRows, export, options, compared); err != nil {
				return err
			}
		}
		printResult := p.printReconciled
		if asJSON {
			printResult = func(c *reconcile.Comparison) error { return p.writeJSON(c) }
		}
		if err := printResult(compared); err != nil {
			return err
		}
		return p.judgeReconciled(args[0], compared)
	})
}

// reconciledReport returns the comparison of the report with orders, and the website of both. The window of the request
// is that of the orders, and not of the visitors.
func reconciledReport(ctx context.Context, s ownedStore, request query.Request) (compared *reconcile.Comparison,
	website int64, err error,
) {
	planned, err := s.Engine.PlanReport(request)
	if err == nil {
		planned, err = s.Engine.PlanInForce(ctx, planned)
	}
	if err != nil {
		return nil, 0, err
	}
	request.Filters = query.Filters{}
	report, err := computeReport(ctx, s.Store, request)
	if err != nil {
		return nil, 0, err
	}
	limit := int64(0)
	if c := report.Checks.Cap; c != nil && c.Amount != nil {
		limit = c.Amount.Units.Int64()
	}
	compared = reconcile.New(planned, limit)
	website = planned.Subject.WebsiteID
	if salt := s.Catalogue.Snapshot().SaltOf(website); salt != nil {
		compared.HashCustomer = func(text string) uint64 { return schema.HashCustomer(salt, text) }
	}
	return compared, website, nil
}

// compareOrders reads the orders of an export, and compares them with the events of the website and with its rejected
// lines.
func compareOrders(ctx context.Context, s ownedStore, export string, options ingest.Options, website int64,
	compared *reconcile.Comparison,
) error {
	if err := ingest.ReadOrders(ctx, export, options, compared.AddOrder); err != nil {
		return err
	}
	if err := compared.CompareEvents(ctx, s.Facts, s.Engine.MaxVisitorEvents()); err != nil {
		return err
	}
	rejects, err := ingest.LastRejects(ctx, s.Conn, website, 100_000)
	for _, r := range rejects {
		compared.NoteRejected(r.Text)
	}
	return err
}

// judgeReconciled prints the rows of a file that cannot be read. It returns an error if there are any, or if the lines
// do not add up.
func (p *program) judgeReconciled(file string, compared *reconcile.Comparison) error {
	for _, fault := range compared.Faults {
		p.printDiagnostic("%s: %s", file, fault)
	}
	unreadable := int64(0)
	for _, books := range compared.AllBooks() {
		unreadable += books.Lines[reconcile.Unreadable].Orders
	}
	if besides := unreadable - int64(len(compared.Faults)); besides > 0 {
		p.printDiagnostic("%s cannot be read besides", wording.CountNoun(besides, "row"))
	}
	switch {
	case !compared.AddsUp():
		return errors.New("the lines do not add up: facts and events differ; run 'lifthouse facts --verify'")
	case unreadable > 0:
		return &exitError{exitRejected}
	}
	return nil
}

// printReconciled prints a sentence and a table of the lines for each currency.
func (p *program) printReconciled(c *reconcile.Comparison) error {
	isFirst := true
	for i, books := range c.AllBooks() {
		isEmpty := books.Export.Orders == 0 && books.Report.Orders == 0
		ofWebsite := i == 0
		hasConverted := slices.ContainsFunc(c.Others, func(b *reconcile.Books) bool { return b.Converted != nil })
		if isEmpty && len(c.Others) > 0 && (!ofWebsite || !hasConverted) {
			continue
		}
		if !isFirst {
			p.printLine("")
		}
		isFirst = false
		if err := p.printBooks(c, books, ofWebsite); err != nil {
			return err
		}
	}
	return nil
}

// moneyIn returns an amount in words, in a currency.
func moneyIn(d *reconcile.Decimal, currency string) string {
	return strings.TrimSpace(strings.TrimSuffix(d.String(), "00") + " " + currency)
}

// printBooks prints a sentence and a table of the lines in one currency.
func (p *program) printBooks(c *reconcile.Comparison, books *reconcile.Books, ofWebsite bool) error {
	money := func(d *reconcile.Decimal) string { return moneyIn(d, books.Currency) }
	rows, reasons := bookRows(books, money)
	switch {
	case ofWebsite:
		rows = append(rows, metricRows(c, money)...)
	case books.RateUnknown != nil:
		rows = append(rows, []any{
			"- without a rate to the website's currency", wording.FormatCount(books.RateUnknown.Orders),
			money(&books.RateUnknown.Value), money(&books.RateUnknown.Profit),
		})
	}
	p.printLine("Of %s (%s), %s are in this report: %s. Difference %s.\n",
		wording.CountNoun(books.Export.Orders, "order"), money(&books.Export.Value),
		wording.FormatCount(books.Lines[reconcile.Counted].Orders+books.Lines[reconcile.Amount].Orders),
		cmp.Or(strings.Join(reasons, ", "), "all"), money(&books.Difference))
	if err := p.printTable(rows); err != nil {
		return err
	}
	if of := books.Converted; of != nil {
		p.printLine("\n%s = %s", conversionInWords(books.Currency, of), moneyIn(&of.To.Value, c.Currency))
	}
	carried := books.Lines[reconcile.Counted].Carried + books.Lines[reconcile.Amount].Carried
	if carried > 0 {
		p.printLine("\nOrders without a visitor that belong to customers won in the test, and are in this report: "+
			"%s", wording.FormatCount(carried))
	}
	return nil
}

// metricRows returns the rows from the report in the currency of the website to its metric.
func metricRows(c *reconcile.Comparison, money func(*reconcile.Decimal) string) (rows [][]any) {
	for _, other := range c.Others {
		if of := other.Converted; of != nil {
			rows = append(rows, []any{
				"+ " + conversionInWords(other.Currency, of), wording.FormatCount(of.To.Orders), money(&of.To.Value),
				money(&of.To.Profit),
			})
		}
	}
	metric := "not known"
	if c.Metric != nil {
		metric = money(c.Metric)
	}
	return append(rows, []any{"- above the cap", "", money(&c.Cap)},
		[]any{"= value per visitor x visitors", "", metric})
}

// conversionInWords says what is converted, and at which rates.
func conversionInWords(currency string, of *reconcile.Conversion) string {
	rates := of.LeastRate
	if of.MostRate != of.LeastRate {
		rates += " to " + of.MostRate
	}
	return fmt.Sprintf("%s %s at %s", currency, moneyIn(&of.From.Value, ""), rates)
}

// bookRows returns the table of the lines in one currency, and why orders are on one side only.
func bookRows(books *reconcile.Books, money func(*reconcile.Decimal) string) (rows [][]any, reasons []string) {
	count := wording.FormatCount
	rows = [][]any{{"", "ORDERS", "VALUE", "PROFIT"}}
	add := func(words string, s *reconcile.OrderSums, mark string) {
		rows = append(rows, []any{words, count(s.Orders), money(&s.Value), money(&s.Profit) + mark})
	}
	add("export", &books.Export, "")
	for _, line := range books.Lines[:reconcile.Counted] {
		words := line.Line.InWords()
		mark := ""
		if line.Orders == 0 && line.Value.Units.Sign() == 0 && line.Profit.Units.Sign() == 0 {
			continue
		}
		switch {
		case line.Line < reconcile.Amount && line.Orders > 0:
			reasons = append(reasons, count(line.Orders)+" "+words)
		case line.Orders < 0: // the report has them
			reasons = append(reasons, "besides "+count(-line.Orders)+" "+words)
		}
		if line.Newer > 0 {
			words += fmt.Sprintf("; %s of them with a newer revision in the export", count(line.Newer))
		}
		if line.Refused > 0 {
			words += fmt.Sprintf("; %s of them refused", count(line.Refused))
		}
		if line.Differs {
			mark = " ! differs between variations"
		}
		add("- "+words, &line.OrderSums, mark)
	}
	add("= report", &books.Report, "")
	return rows, reasons
}

// writeOrderRows reads the export again, and writes the line of each order to a CSV file.
func (p *program) writeOrderRows(
	ctx context.Context, name, export string, options ingest.Options, c *reconcile.Comparison,
) error {
	file, err := p.createOutput("--rows", name)
	if err != nil {
		return err
	}
	w := csv.NewWriter(file)
	_ = w.Write([]string{
		"row", "eventId", "line", "variationId", "currency", "value", "profit", "ourValue", "ourProfit", "why",
	})
	at := 0
	same := true
	err = ingest.ReadOrders(ctx, export, options, func(o *ingest.Order) {
		same = same && at < len(c.Rows) && c.Rows[at].Event == o.Event
		if !same {
			return
		}
		row := c.Rows[at]
		at++
		ours := [2]string{}
		if row.Line == reconcile.Amount || row.Line == reconcile.Counted {
			ours = [2]string{schema.FormatUnits(row.Ours[0]), schema.FormatUnits(row.Ours[1])}
		}
		_ = w.Write([]string{
			fmt.Sprint(o.FileLine), wording.EscapeFormula(o.ID), row.Line.String(), row.Variation, row.Currency,
			schema.FormatUnits(o.Value), schema.FormatUnits(o.Profit), ours[0], ours[1],
			wording.EscapeFormula(o.Fault),
		})
	})
	w.Flush()
	if err == nil && (!same || at < len(c.Rows)) {
		err = fmt.Errorf("%s has other rows when it is read again, so --rows is not complete", export)
	}
	return errors.Join(err, w.Error(), file.Close())
}
