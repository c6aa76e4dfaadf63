package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/bounds"
	"lifthouse/cmd/internal/terminal"
	"lifthouse/engine/wording"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"

	"github.com/spf13/cobra"
)

func (p *program) forgetCommand() *cobra.Command {
	var visitors, customers []string
	var website int64
	var yes, keepVisitors bool
	cmd := newCommand("forget", noArgs, func(cmd *cobra.Command, _ []string) error {
		switch {
		case len(visitors) > 0 && len(customers) > 0:
			return usageError{errors.New("--visitor and --customer: only one of them may be given")}
		case len(customers) == 0 && keepVisitors:
			return usageError{errors.New("--keep-visitors: needs --customer")}
		case len(visitors)+len(customers) == 0:
			return usageError{errors.New(
				"--visitor: must be the id of a visitor, or --customer the id or e-mail of a customer")}
		}
		return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
			if len(customers) > 0 {
				return p.forgetCustomers(ctx, s, customers, website, keepVisitors, yes)
			}
			return p.forgetVisitors(ctx, s, visitors, website, yes)
		})
	})
	cmd.Flags().StringArrayVar(&visitors, "visitor", nil, "id of a visitor as in events; can be repeated")
	cmd.Flags().StringArrayVar(&customers, "customer", nil,
		"id or e-mail of a customer as in events; can be repeated")
	cmd.Flags().BoolVar(&keepVisitors, "keep-visitors", false,
		"with --customer: keep the events of the visitors that do not name the customer")
	bounds.Var(cmd.Flags(), &website, "website", 0, 0, bounds.MaxID, "id of the website; default: all websites")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return cmd
}

// forgetVisitors deletes all data of visitors.
func (p *program) forgetVisitors(
	ctx context.Context, s *app.Store, visitors []string, website int64, yes bool,
) error {
	websites := websitesOf(website)
	if !yes {
		found, err := s.Writer.CountVisitors(ctx, visitors, websites)
		if err != nil {
			return err
		}
		if !p.confirm("Stored: %s of %s. Delete permanently?",
			wording.CountNoun(found.Events, "event"), wording.CountNoun(found.Subjects, "subject")) {
			return errNotConfirmed
		}
	}
	var erased ingest.Erased
	err := terminal.ShowWork(p.stderr, "deleting", "", terminal.Unknown, func() (err error) {
		erased, err = s.Writer.ForgetVisitors(ctx, visitors, websites)
		return err
	})
	if err != nil {
		return err
	}
	changed := websitesOrAll(website, s.Catalogue.Snapshot())
	if err := s.Catalogue.RecordFactsChange(ctx, catalogue.VisitorsForgotten, changed...); err != nil {
		return err
	}
	p.printLine("deleted %s of %s", wording.CountNoun(erased.Events, "event"),
		wording.CountNoun(erased.Subjects, "subject"))
	return nil
}

// forgetCustomers deletes all data of customers, and of the visitors that their orders name.
func (p *program) forgetCustomers(
	ctx context.Context, s *app.Store, texts []string, website int64, keepVisitors, yes bool,
) error {
	known := s.Catalogue.Snapshot()
	websites := websitesOrAll(website, known)
	customers := customersOf(known, websites, texts)
	if !yes {
		found, err := s.Writer.CountCustomers(ctx, customers)
		if err != nil {
			return err
		}
		what := "and all events of these visitors"
		if keepVisitors {
			what = "and their other events stay"
		}
		if !p.confirm("Stored: %s of these customers, which name %s. Delete them permanently, %s?",
			wording.CountNoun(found.Orders, "order"), wording.CountNoun(found.Visitors, "visitor"), what) {
			return errNotConfirmed
		}
	}
	var erased ingest.ErasedCustomers
	err := terminal.ShowWork(p.stderr, "deleting", "", terminal.Unknown, func() (err error) {
		erased, err = s.Writer.ForgetCustomers(ctx, customers, texts, keepVisitors)
		return err
	})
	if err != nil {
		return err
	}
	if err := s.Catalogue.RecordFactsChange(ctx, catalogue.VisitorsForgotten, websites...); err != nil {
		return err
	}
	of := "all events of"
	if keepVisitors {
		of = "events that name them of"
	}
	p.printLine("deleted %s, and %s %s", wording.CountNoun(erased.Orders, "order"), of,
		wording.CountNoun(erased.Visitors, "visitor"))
	return nil
}

// customersOf returns the customers of websites with ids or e-mails as they were sent.
func customersOf(known *catalogue.Snapshot, websites []int64, texts []string) (customers []schema.Customer) {
	for _, website := range websites {
		salt := known.SaltOf(website)
		if salt == nil {
			continue // no customer is stored
		}
		for _, text := range texts {
			customers = append(customers, schema.Customer{WebsiteID: website, ID: schema.HashCustomer(salt, text)})
		}
	}
	return customers
}

var errNotConfirmed = errors.New("nothing was deleted; answer y or use --yes")

// confirm asks a question, and reports whether the answer is yes.
func (p *program) confirm(question string, values ...any) bool {
	p.printLine(question+" [y/N]", values...)
	answer, _ := bufio.NewReader(p.stdin).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

func (p *program) retainCommand() *cobra.Command {
	var days int
	var dryRun, yes bool
	cmd := newCommand("retain", noArgs, func(cmd *cobra.Command, _ []string) error {
		if days == 0 {
			return usageError{fmt.Errorf("--days is missing: must be an integer from 1 to %d", bounds.MaxDays)}
		}
		return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
			found, err := s.ExpiredSubjects(ctx, days, time.Now())
			if err != nil {
				return err
			}
			var total uint64
			for _, e := range found {
				total += e.Events
				ended := "ended"
				if e.Undeclared {
					ended = "not declared, latest event"
				}
				p.printLine("%s %d %q of website %d, %s %s: %s", e.Kind, e.ID, e.Name, e.WebsiteID, ended,
					e.EndDate.Format(time.DateOnly), wording.CountNoun(e.Events, "event"))
			}
			events, subjects := wording.CountNoun(total, "event"), wording.CountNoun(len(found), "subject")
			switch {
			case len(found) == 0:
				p.printLine("No events are past the retention period of %s.", wording.CountNoun(days, "day"))
				return nil
			case dryRun:
				p.printLine("Dry run: %s of %s would be deleted; nothing was deleted.", events, subjects)
				return nil
			case !yes && !p.confirm("Delete %s of %s permanently?", events, subjects):
				return errNotConfirmed
			}
			err = terminal.ShowWork(p.stderr, "deleting", "", terminal.Unknown,
				func() error { return s.EraseSubjects(ctx, found) })
			if err != nil {
				return err
			}
			p.printLine("deleted %s of %s", events, subjects)
			dropped, err := s.Writer.DropOldCustomers(ctx, time.Now().AddDate(0, 0, -days))
			if dropped > 0 {
				p.printLine("deleted the orders of %s without further events", wording.CountNoun(dropped, "customer"))
			}
			return err
		})
	})
	bounds.Var(cmd.Flags(), &days, "days", 0, 1, bounds.MaxDays, "retention period in days after the end")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "list what would be deleted without deleting it")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return cmd
}
