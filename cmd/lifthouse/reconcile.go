package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/bounds"
	"lifthouse/cmd/internal/terminal"
	"lifthouse/engine/facts"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/reconcile"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"

	"github.com/spf13/cobra"
)

const reconcileHelp = `Reconcile compares a shop's own books with a report. It reads an export of orders, as import does, and puts
each order in one named line: in the report, without a visitor, before the first view, not received, and so on. The
lines add up exactly. It stores nothing.

  lifthouse reconcile orders.csv --campaign 12 -m orders.mapping.yaml
  lifthouse reconcile orders.csv --campaign 12 -m orders.mapping.yaml --from 2026-05-01 --to 2026-05-31
  lifthouse reconcile orders.csv --widget 7 --experiment 2 --goal 3 --rows lines.csv

An order is a goal event of the mapping. Its time is that of the order, and dates are in the website's time zone. A line
marked with ! differs between variations, and so biases the report. The exit status is 3 if rows cannot be read, and 1
if the lines do not add up, which they always should.`

// reconcileOptions are the flags of the command.
type reconcileOptions struct {
	campaign, goal, mapping, format, from, to, rows string
	widget, experiment                              int64
	asJSON                                          bool
}

func (p *program) reconcileCommand() *cobra.Command {
	var o reconcileOptions
	cmd := &cobra.Command{
		Use: "reconcile FILE", Short: "Compare a shop's own orders with a report, to the cent", Long: reconcileHelp,
		Args: oneArg,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			switch err := onlyOne(cmd, "campaign", "widget"); {
			case err != nil:
				return err
			case o.campaign == "" && o.widget == 0:
				return usageError{errors.New("reconcile: --campaign or --widget is required")}
			case o.experiment != 0 && o.widget == 0:
				return usageError{errors.New("--experiment: needs --widget")}
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.campaign, "campaign", "", "id or key of the campaign")
	bounds.Var(flags, &o.widget, "widget", 0, 0, bounds.MaxID, "id of the widget")
	bounds.Var(flags, &o.experiment, "experiment", 0, 0, bounds.MaxID, "id of the widget's experiment")
	flags.StringVar(&o.goal, "goal", "", "id or key of the goal; default: the primary goal")
	flags.StringVarP(&o.mapping, "mapping", "m", "", "mapping of the file, as for import")
	flags.StringVar(&o.format, "format", "", "csv, ndjson or parquet; default: from the mapping or the file name")
	flags.StringVar(&o.from, "from", "", "first day of the orders, such as 2026-05-01")
	flags.StringVar(&o.to, "to", "", "last day of the orders")
	flags.BoolVar(&o.asJSON, "json", false, "print JSON")
	flags.StringVar(&o.rows, "rows", "", "CSV file to write, with the line of each order")
	return p.onAccount(cmd,
		func(ctx context.Context, s *app.Store, owned *catalogue.AccountResources, args []string) error {
			return p.reconcileFile(ctx, s, owned, args[0], &o)
		})
}

// planOf returns the plan of the report.
func (o *reconcileOptions) planOf(ctx context.Context, s *app.Store, owned *catalogue.AccountResources) (
	*plan.Plan, query.Request, error,
) {
	subject := schema.Subject{Kind: schema.SubjectWidget, ID: o.widget, ExperimentID: o.experiment}
	var err error
	if o.campaign != "" {
		subject.Kind = schema.SubjectCampaign
		if subject.ID, err = owned.FindID(schema.NameCampaign, o.campaign); err != nil {
			return nil, query.Request{}, fmt.Errorf("--campaign: %w", err)
		}
	}
	request := plan.ResultsRequest(owned.ID, subject)
	if o.goal != "" {
		if request.GoalID, err = owned.FindID(schema.NameGoal, o.goal); err != nil {
			return nil, request, fmt.Errorf("--goal: %w", err)
		}
	}
	planned, err := s.Engine.PlanReport(request)
	if err == nil {
		planned, err = s.Engine.PlanInForce(ctx, planned)
	}
	return planned, request, err
}

// dates returns the first instant of the dates, and the first one after them.
func (o *reconcileOptions) dates(zone *time.Location) (from, to time.Time, err error) {
	from, to = schema.FirstTime, schema.EndOfTime
	for name, text := range map[string]string{"from": o.from, "to": o.to} {
		if text == "" {
			continue
		}
		day, err := time.Parse(time.DateOnly, text)
		switch {
		case err != nil:
			return from, to, usageError{fmt.Errorf("--%s %q: must be a date such as 2026-05-01", name, text)}
		case name == "from":
			from = query.StartOfDate(day, zone)
		default:
			to = query.StartOfDate(day.AddDate(0, 0, 1), zone)
		}
	}
	if !from.Before(to) {
		return from, to, usageError{fmt.Errorf("--to %s: must not be before --from %s", o.to, o.from)}
	}
	return from, to, nil
}

// reconcileFile compares the orders of a file with a report, and prints the lines.
func (p *program) reconcileFile(
	ctx context.Context, s *app.Store, owned *catalogue.AccountResources, file string, o *reconcileOptions,
) error {
	// the report, and the orders of the file
	planned, request, err := o.planOf(ctx, s, owned)
	if err != nil {
		return err
	}
	website := owned.Websites[planned.Subject.WebsiteID]
	from, to, err := o.dates(website.Location())
	if err != nil {
		return err
	}
	report, err := computeReport(ctx, s, request)
	if err != nil {
		return err
	}
	options, err := p.importOptions(s, o.mapping, o.format, planned.Subject.WebsiteID)
	if err != nil {
		return err
	}
	compared := reconcile.New(planned, from, to)
	if err := ingest.ReadOrders(ctx, p.absolutePath(file), options, compared.AddOrder); err != nil {
		return err
	}

	// the comparison
	limit := int64(0)
	if c := report.Checks.Cap; c != nil && c.Amount != nil {
		limit = c.Amount.Units.Int64()
	}
	if err := compared.CompareEvents(ctx, s.Facts, s.Engine.MaxVisitorEvents(), limit); err != nil {
		return err
	}
	refused, err := ingest.FindRefused(ctx, s.Conn, website.ID, compared.IDsIn(reconcile.NotReceived))
	if err != nil {
		return err
	}
	compared.Refused = int64(len(refused))

	// the result
	if o.rows != "" {
		inputs := slices.Concat([]string{file, o.mapping, p.configFile()}, options.LookupFiles())
		if err := cmp.Or(p.checkOutput("--rows", o.rows, inputs), p.writeOrderRows(o.rows, compared)); err != nil {
			return err
		}
	}
	body := newReconciled(compared, o, &website, s.Facts.SubjectCounters(planned.Subject).FirstExposed)
	if o.asJSON {
		err = p.writeJSON(body)
	} else {
		err = p.printReconciled(body)
	}
	if err != nil {
		return err
	}
	return p.judgeReconciled(file, compared)
}

// judgeReconciled returns the error of the command: the lines do not add up, or rows cannot be read.
func (p *program) judgeReconciled(file string, c *reconcile.Comparison) error {
	shown := int64(0)
	for _, row := range c.Rows {
		if row.Line == reconcile.Unreadable {
			if shown++; shown <= shownRejects {
				p.printDiagnostic("%s: line %d: %s", file, row.FileLine, row.Why)
			}
		}
	}
	if shown > shownRejects {
		p.printDiagnostic("%s cannot be read besides", terminal.CountWithNoun(shown-shownRejects, "row"))
	}
	if !c.AddsUp() {
		return errors.New("the lines do not add up: facts and events differ; run 'lifthouse facts --verify'")
	}
	if shown > 0 {
		return &exitError{exitRejected}
	}
	return nil
}

// orderSums are the orders of a line, with amounts as decimal strings.
type orderSums struct {
	Orders int64  `json:"orders"`
	Value  string `json:"value"`
	Profit string `json:"profit"`
}

func newOrderSums(s *facts.OrderSums) orderSums {
	return orderSums{s.Orders, decimalText(&s.Value), decimalText(&s.Profit)}
}

// decimalText writes an amount with all decimals.
func decimalText(units *big.Int) string {
	return new(big.Rat).SetFrac(units, big.NewInt(schema.MoneyScale)).FloatString(4)
}

// reconciledLine is a line of the comparison.
type reconciledLine struct {
	Line reconcile.Line `json:"line"`
	orderSums
	Newer      *int64               `json:"newer,omitempty"`   // of amount: with a higher revision in the export
	Refused    *int64               `json:"refused,omitempty"` // of notReceived: in lines rejected in the last week
	Differs    bool                 `json:"differs"`           // between variations, by more than chance
	Variations map[string]orderSums `json:"variations"`        // by that of the first view
}

// reconciled is the comparison as JSON.
type reconciled struct {
	schema.SubjectIDs
	Goal     int64             `json:"goal"` // 0: all goals
	Currency string            `json:"currency,omitempty"`
	Dates    map[string]string `json:"dates"`
	Lines    []reconciledLine  `json:"lines"`
	Export   orderSums         `json:"export"`
	Counted  int64             `json:"counted"` // orders of the export in the report
	Report   orderSums         `json:"report"`
	Cap      string            `json:"cap"` // value above the cap
	Metric   string            `json:"metric"`
	// Difference is what the lines do not explain.
	Difference string `json:"difference"`
}

func newReconciled(
	c *reconcile.Comparison, o *reconcileOptions, website *catalogue.Website, visitors map[int64]int64,
) *reconciled {
	left := c.Difference()
	r := &reconciled{
		SubjectIDs: c.Orders.Subject.IDs(), Goal: c.Orders.GoalID, Currency: website.Currency,
		Dates:  map[string]string{"from": o.from, "to": o.to, "timezone": website.Location().String()},
		Export: newOrderSums(&c.Export), Report: newOrderSums(&c.Report), Cap: decimalText(&c.Cap.Value),
		Counted: c.Lines[reconcile.Counted].Orders + c.Lines[reconcile.Amount].Orders,
		Metric:  decimalText(new(big.Int).Sub(&c.Report.Value, &c.Cap.Value)), Difference: decimalText(&left.Value),
	}
	for _, name := range reconcile.Lines {
		tally := c.Lines[name]
		line := reconciledLine{
			Line: name, orderSums: newOrderSums(&tally.OrderSums), Differs: c.Differs(name, visitors),
			Variations: map[string]orderSums{},
		}
		for variation, sums := range tally.Variations {
			line.Variations[variation] = newOrderSums(sums)
		}
		switch name {
		case reconcile.Amount:
			line.Newer = &c.Newer
		case reconcile.NotReceived:
			line.Refused = &c.Refused
		}
		r.Lines = append(r.Lines, line)
	}
	return r
}

// linesInWords describes the orders of a line.
var linesInWords = map[reconcile.Line]string{
	reconcile.Unreadable: "cannot be read", reconcile.Repeated: "repeated in the export",
	reconcile.OtherPeriod: "outside the dates", reconcile.OtherGoal: "of another goal or website",
	reconcile.Cancelled: "cancelled", reconcile.NoVisitor: "without a visitor",
	reconcile.OtherVisitor: "stored under another visitor", reconcile.NotReceived: "not received",
	reconcile.CancelledHere: "cancelled here", reconcile.OtherTime: "with another time here",
	reconcile.AutomatedVisitor: "of automated visitors", reconcile.NotInCampaign: "of visitors without a view",
	reconcile.BeforeFirstView:     "before the first view",
	reconcile.SeveralVariations:   "of excluded visitors, who saw several variations",
	reconcile.UndeclaredVariation: "of variations that the report does not have",
	reconcile.Amount:              "with another amount here, by the difference",
	reconcile.NotInExport:         "in the report only",
}

// printReconciled prints a sentence, and a table of the lines.
func (p *program) printReconciled(r *reconciled) error {
	money := func(text string) string {
		return strings.TrimSpace(strings.TrimSuffix(text, "00") + " " + r.Currency)
	}
	rows := [][]any{
		{"", "ORDERS", "VALUE", "PROFIT"},
		{"export", result.FormatCount(r.Export.Orders), money(r.Export.Value), money(r.Export.Profit)},
	}
	var reasons []string
	for _, line := range r.Lines {
		if line.Orders == 0 {
			continue
		}
		words, mark := linesInWords[line.Line], ""
		if line.Line != reconcile.Amount && line.Line != reconcile.NotInExport {
			reasons = append(reasons, result.FormatCount(line.Orders)+" "+words)
		}
		for note, n := range map[string]*int64{"with a newer revision in the export": line.Newer, "refused": line.Refused} {
			if n != nil && *n > 0 {
				words += fmt.Sprintf("; %s of them %s", result.FormatCount(*n), note)
			}
		}
		if line.Differs {
			mark = " ! differs between variations"
		}
		rows = append(rows, []any{
			"- " + words, result.FormatCount(line.Orders), money(line.Value), money(line.Profit) + mark,
		})
	}
	rows = append(rows, []any{"= report", result.FormatCount(r.Report.Orders), money(r.Report.Value), money(r.Report.Profit)},
		[]any{"- above the cap", "", money(r.Cap)}, []any{"= value per visitor x visitors", "", money(r.Metric)})
	p.printLine("Of %s (%s), %s are in this report: %s. Difference %s.\n",
		terminal.CountWithNoun(r.Export.Orders, "order"), money(r.Export.Value), result.FormatCount(r.Counted),
		cmp.Or(strings.Join(reasons, ", "), "all"), money(r.Difference))
	return p.printTable(rows)
}

// writeOrderRows writes the line of each order to a CSV file.
func (p *program) writeOrderRows(name string, c *reconcile.Comparison) error {
	file, err := os.Create(filepath.Clean(p.absolutePath(name)))
	if err != nil {
		return err
	}
	w := csv.NewWriter(file)
	_ = w.Write([]string{"row", "eventId", "line", "variationId", "value", "profit", "ourValue", "ourProfit", "why"})
	for _, row := range c.Rows {
		cells := []string{
			strconv.FormatInt(row.FileLine, 10), row.ID, string(row.Line), row.Variation,
			decimalText(big.NewInt(row.Value)), decimalText(big.NewInt(row.Profit)), "", "", row.Why,
		}
		if row.Counted != nil {
			cells[6], cells[7] = decimalText(big.NewInt(row.Counted.Value)), decimalText(big.NewInt(row.Counted.Profit))
		}
		_ = w.Write(cells) // Flush returns the error
	}
	w.Flush()
	return errors.Join(w.Error(), file.Close())
}
