package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/arrivals"
	"lifthouse/cmd/internal/bounds"
	"lifthouse/engine/fold"
	"lifthouse/engine/metric"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/story"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
)

// eventsOptions are the flags of events.
type eventsOptions struct {
	arrivals.Query
	asJSON, summary, follow bool
	visitor, metric         string
	customer                string
}

func (p *program) eventsCommand() *cobra.Command {
	var o eventsOptions
	cmd := newCommand("events", noArgs, func(cmd *cobra.Command, _ []string) error {
		if err := o.checkFlags(cmd); err != nil {
			return err
		}
		return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
			switch {
			case o.visitor != "":
				return p.printVisitor(ctx, s, &o)
			case o.customer != "":
				return p.printCustomer(ctx, s, &o)
			}
			names, err := s.Writer.Names(ctx)
			switch {
			case err != nil:
				return err
			case o.summary:
				return p.printReceived(ctx, s, &o, names)
			case o.follow:
				return arrivals.NewFollower(s.Conn, o.Query, names.KeyOf).WriteNewArrivals(ctx, p.stdout, o.asJSON)
			default:
				return p.printLastArrivals(ctx, s, &o, names)
			}
		})
	})
	bounds.Var(cmd.Flags(), &o.Website, "website", 0, 0, bounds.MaxID, "id of the website; default: all websites")
	bounds.Var(cmd.Flags(), &o.Last, "last", 20, 0, 10_000, "maximum number of events, and of rejected lines")
	cmd.Flags().BoolVar(&o.OnlyRejected, "rejects", false, "print rejected lines only")
	cmd.Flags().StringVar(&o.visitor, "visitor", "",
		"id of a visitor, as it was sent: print what reports make of the visitor")
	cmd.Flags().StringVar(&o.customer, "customer", "",
		"id or e-mail of a customer, as it was sent: print the orders, and for which visitors they count")
	cmd.Flags().StringVar(&o.metric, "metric", "",
		"with --visitor: also print what a metric, such as 'sum(purchase.value)', is of the visitor")
	cmd.Flags().BoolVar(&o.summary, "summary", false,
		"print how many events were accepted in the last hour, day and week")
	cmd.Flags().BoolVar(&o.follow, "follow", false, "go on with what arrives until interrupted")
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "print one JSON object per line")
	return cmd
}

// checkFlags returns an error if flags contradict each other.
func (o *eventsOptions) checkFlags(cmd *cobra.Command) error {
	for _, other := range []string{"last", "rejects", "follow"} {
		if err := onlyOne(cmd, "visitor", "customer", "summary", other); err != nil {
			return err
		}
	}
	for _, one := range []string{"visitor", "customer"} {
		if err := onlyOne(cmd, one, "json"); err != nil {
			return err
		}
	}
	if cmd.Flags().Changed("customer") && o.customer == "" {
		return usageError{errors.New("--customer: must be the id or e-mail of a customer")}
	}
	if cmd.Flags().Changed("visitor") && o.visitor == "" {
		return usageError{errors.New("--visitor: must be the id of a visitor")}
	}
	if cmd.Flags().Changed("metric") && o.visitor == "" {
		return usageError{errors.New("--metric: needs --visitor")}
	}
	return nil
}

// printVisitor prints what reports make of a visitor.
func (p *program) printVisitor(ctx context.Context, s *app.Store, o *eventsOptions) error {
	most := s.Engine.MaxVisitorEvents()
	of, err := s.Journal.ReadVisitor(ctx, o.visitor, websitesOf(o.Website), most+1)
	if err != nil {
		return err
	}
	chapters := story.ExplainEvents(of, most, s.Catalogue.Snapshot(), s.Engine.Books(), s.Engine.AsOfFirstView)
	var measured map[schema.Subject]string
	if o.metric != "" {
		measured, err = measureVisitor(ctx, s, chapters, o.metric)
		if err != nil {
			return err
		}
	}
	return arrivals.WriteStory(p.stdout, o.visitor, of, chapters, measured)
}

// printCustomer prints the orders of a customer, and for which visitors they count.
func (p *program) printCustomer(ctx context.Context, s *app.Store, o *eventsOptions) error {
	known := s.Catalogue.Snapshot()
	websites := websitesOrAll(o.Website, known)
	names, err := s.Writer.Names(ctx)
	if err != nil {
		return err
	}
	var found []arrivals.CustomerOrders
	for _, of := range customersOf(known, websites, []string{o.customer}) {
		rows, err := s.Facts.ReadCustomers(ctx, of.WebsiteID, []uint64{of.ID})
		if err != nil {
			return err
		}
		fold.EachCustomer(rows, func(orders *fold.CustomerOrders) {
			found = append(found, arrivals.CustomerOrders{WebsiteID: of.WebsiteID, CustomerOrders: orders})
		})
	}
	return arrivals.WriteCustomer(p.stdout, found, known.Money(), names.KeyOf)
}

// measureVisitor returns what a metric is of the visitor of a story, in words, for each campaign or experiment in which
// the visitor counts. A metric whose names only some websites have is that of these. The error has the faults of the
// metric if no website has its names.
func measureVisitor(
	ctx context.Context, s *app.Store, chapters []*story.Chapter, text string,
) (map[schema.Subject]string, error) {
	measured := map[schema.Subject]string{}
	var wrong error
	isKnown := false
	for _, c := range chapters {
		events := c.CountedEvents()
		if len(events) == 0 {
			continue
		}
		m, err := metricOfSubject(ctx, s, c.Subject, text)
		if _, is := errors.AsType[*query.InvalidError](err); is {
			wrong = err
			continue
		}
		if err != nil {
			return nil, err
		}
		isKnown = true
		values := make([]string, 0, 2)
		for _, q := range m.Quantities() {
			values = append(values, metric.FormatNumber(q.Of(events)*metric.Scale/q.Scale()))
		}
		measured[c.Subject] = m.String() + " = " + strings.Join(values, " / ")
	}
	if wrong != nil && !isKnown {
		return nil, usageError{wrong}
	}
	return measured, nil
}

// metricOfSubject returns a metric with the ranges of ages that count in the reports of a subject.
func metricOfSubject(ctx context.Context, s *app.Store, of schema.Subject, text string) (*metric.Metric, error) {
	snapshot := s.Catalogue.Snapshot()
	account, _ := snapshot.AccountOfWebsite(of.WebsiteID)
	owned := snapshot.AccountResources(account)
	names, err := s.Engine.ReadNames(ctx, owned, of.WebsiteID)
	if err != nil {
		return nil, err
	}
	request := plan.ResultsRequest(account, of)
	request.Expression = text
	request.Names = names
	p, err := s.Engine.PlanWithNames(ctx, request, owned)
	if err != nil {
		return nil, err
	}
	p = s.Engine.AsOfFirstView(p)
	if p.Expression != nil {
		return p.Expression, nil
	}
	m, err := metric.Parse(text, names) // it has a name
	if window := p.ConversionWindow; err == nil && window.IsSet() {
		m = m.WithRange(metric.Range{From: window.From, To: window.To})
	}
	return m, err
}

// printReceived prints how many events were accepted in the last hour, day and week.
func (p *program) printReceived(ctx context.Context, s *app.Store, o *eventsOptions, names *ingest.Names) error {
	stored, err := ingest.CountReceived(ctx, s.Conn, o.Website, time.Now())
	if err != nil {
		return err
	}
	all := arrivals.ReceivedOf(stored, s.Catalogue.Snapshot(), names.KeyOf)
	if o.asJSON {
		for _, r := range all {
			if err := p.writeJSON(r); err != nil {
				return err
			}
		}
		return nil
	}
	for i, r := range all {
		if i > 0 {
			p.printLine("")
		}
		r.WriteText(p.stdout)
	}
	if len(all) == 0 {
		p.printLine("Nothing was accepted in the last week.")
	}
	return nil
}

// printLastArrivals prints the last events and rejected lines.
func (p *program) printLastArrivals(ctx context.Context, s *app.Store, o *eventsOptions, names *ingest.Names) error {
	last, err := arrivals.LastArrivals(ctx, s.Conn, o.Query, names.KeyOf)
	if err != nil {
		return err
	}
	if len(last) == 0 && !o.asJSON {
		p.printLine("Nothing has arrived.")
	}
	return arrivals.WriteAll(p.stdout, last, o.asJSON)
}

// websitesOf returns the website that a flag names, or none for all.
func websitesOf(id int64) []int64 {
	if id == 0 {
		return nil
	}
	return []int64{id}
}

// websitesOrAll returns the website that a flag names, or all if it names none.
func websitesOrAll(id int64, known *catalogue.Snapshot) []int64 {
	if id == 0 {
		return known.WebsiteIDs()
	}
	return []int64{id}
}
