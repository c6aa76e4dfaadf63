package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"strings"

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

		// the report, whose window is that of the orders, and not of the visitors
		planned, err := s.Engine.PlanReport(request)
		if err == nil {
			planned, err = s.Engine.PlanInForce(ctx, planned)
		}
		if err != nil {
			return err
		}
		request.Filters = query.Filters{}
		report, err := computeReport(ctx, s.Store, request)
		if err != nil {
			return err
		}
		limit := int64(0)
		if c := report.Checks.Cap; c != nil && c.Amount != nil {
			limit = c.Amount.Units.Int64()
		}

		// the orders
		website := planned.Subject.WebsiteID
		options, err := p.importOptions(s.Store, mapping, format, website)
		if err != nil {
			return err
		}
		compared := reconcile.New(planned, limit)
		compared.Currency = s.owned.Websites[website].Currency
		export := p.inputPath(args[0])
		if err := ingest.ReadOrders(ctx, export, options, compared.AddOrder); err != nil {
			return err
		}
		if err := compared.CompareEvents(ctx, s.Facts, s.Engine.MaxVisitorEvents()); err != nil {
			return err
		}
		rejects, err := ingest.LastRejects(ctx, s.Conn, website, 100_000)
		if err != nil {
			return err
		}
		for _, r := range rejects {
			compared.NoteRejected(r.Text)
		}

		// the result
		if orderRows != "" {
			err = p.writeOrderRows(ctx, orderRows, export, options, compared)
		}
		switch {
		case err != nil:
		case asJSON:
			err = p.writeJSON(compared)
		default:
			err = p.printReconciled(compared)
		}
		if err != nil {
			return err
		}

		// the judgement: the lines do not add up, or rows cannot be read
		for _, fault := range compared.Faults {
			p.printDiagnostic("%s: %s", args[0], fault)
		}
		unreadable := compared.Lines[reconcile.Unreadable].Orders
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
	})
}

// printReconciled prints a sentence, and a table of the lines.
func (p *program) printReconciled(c *reconcile.Comparison) error {
	money := func(d *reconcile.Decimal) string {
		return strings.TrimSpace(strings.TrimSuffix(d.String(), "00") + " " + c.Currency)
	}
	count, reasons := wording.FormatCount, []string{}
	rows := [][]any{{"", "ORDERS", "VALUE", "PROFIT"}}
	add := func(words string, s *reconcile.Sums, mark string) {
		rows = append(rows, []any{words, count(s.Orders), money(&s.Value), money(&s.Profit) + mark})
	}
	add("export", &c.Export, "")
	for _, line := range c.Lines[:reconcile.Counted] {
		words, mark := line.Line.InWords(), ""
		if line.Orders == 0 {
			continue
		}
		if line.Line < reconcile.Amount {
			reasons = append(reasons, count(line.Orders)+" "+words)
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
		add("- "+words, &line.Sums, mark)
	}
	add("= report", &c.Report, "")
	rows = append(rows, []any{"- above the cap", "", money(&c.Cap)},
		[]any{"= value per visitor x visitors", "", money(&c.Metric)})
	p.printLine("Of %s (%s), %s are in this report: %s. Difference %s.\n",
		wording.CountNoun(c.Export.Orders, "order"), money(&c.Export.Value),
		count(c.Lines[reconcile.Counted].Orders+c.Lines[reconcile.Amount].Orders),
		cmp.Or(strings.Join(reasons, ", "), "all"), money(&c.Difference))
	return p.printTable(rows)
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
	_ = w.Write([]string{"row", "eventId", "line", "variationId", "value", "profit", "ourValue", "ourProfit", "why"})
	at, same := 0, true
	err = ingest.ReadOrders(ctx, export, options, func(o *ingest.Order) {
		if same = same && at < len(c.Rows) && c.Rows[at].Event == o.Event; !same {
			return
		}
		row := c.Rows[at]
		at++
		ours := [2]string{}
		if row.Line == reconcile.Amount || row.Line == reconcile.Counted {
			ours = [2]string{schema.FormatUnits(row.Ours[0]), schema.FormatUnits(row.Ours[1])}
		}
		_ = w.Write([]string{
			fmt.Sprint(o.FileLine), o.ID, row.Line.String(), row.Variation, schema.FormatUnits(o.Value),
			schema.FormatUnits(o.Profit), ours[0], ours[1], o.Fault,
		})
	})
	w.Flush()
	if err == nil && (!same || at < len(c.Rows)) {
		err = fmt.Errorf("%s has other rows when it is read again, so --rows is not complete", export)
	}
	return errors.Join(err, w.Error(), file.Close())
}
