package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"lifthouse/cmd/internal/bounds"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/tables"
	"lifthouse/engine/wording"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"

	"github.com/spf13/cobra"
)

func (p *program) worthCommand() *cobra.Command {
	var asJSON, asCSV bool
	values := map[string]*string{"goal": nil, "metric": nil, "from": nil, "to": nil}
	var website int64
	cmd := newCommand("worth", func(cmd *cobra.Command, _ []string) error { return onlyOne(cmd, "json", "csv") }, nil)
	bounds.Var(cmd.Flags(), &website, "website", 0, 0, bounds.MaxID, "id of the website; required if there are several")
	values["goal"] = cmd.Flags().String("goal", "", "id of the goal; default: that of most campaigns")
	values["metric"] = cmd.Flags().String("metric", "",
		"metric on which the campaigns are decided; default: that of most")
	values["from"] = cmd.Flags().String("from", "", "first day of shipping that counts, such as 2026-01-01")
	values["to"] = cmd.Flags().String("to", "", "last day of shipping that counts")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&asCSV, "csv", false, "print CSV")
	return p.onAccount(cmd, func(ctx context.Context, s ownedStore, _ []string) error {
		given := url.Values{}
		for name, value := range values {
			if *value != "" {
				given.Set(name, *value)
			}
		}
		asked, err := query.ParseProgramme(given.Encode())
		if err != nil {
			return usageError{err}
		}
		asked.WebsiteID, err = websiteOr(website, s.owned)
		if err != nil {
			return err
		}
		if asCSV {
			return p.writeWorthTable(ctx, s, asked)
		}
		found, err := s.Engine.ReadProgramme(ctx, asked)
		switch {
		case err != nil:
			return err
		case asJSON:
			return p.writeJSON(found)
		}
		for _, sentence := range found.Sentences {
			p.printLine("%s", sentence)
		}
		rows := [][]any{{"ID", "CAMPAIGN", "VARIATION", "OUTCOME", "DATE", "WORTH"}}
		for i := range found.Items {
			item := &found.Items[i]
			id := strconv.FormatInt(item.CampaignID, 10)
			if item.WidgetID != 0 {
				id = fmt.Sprintf("%d/%d", item.WidgetID, item.ExperimentID)
			}
			outcome := item.Outcome.Outcome.Outcome
			if outcome == catalogue.Shipped && !item.Shipped {
				outcome = catalogue.Dropped
			}
			shown := result.NewWorthItem(&item.Item, found.Currency)
			said := cmp.Or(shown.InWords(), wording.ExplainReason(item.Reason))
			rows = append(rows, []any{id, item.Campaign, item.Name, outcome, item.Outcome.Date, said})
		}
		return p.printTable(rows)
	})
}

// writeWorthTable prints the table worth of a website as CSV, of one goal and one metric if they are asked for.
func (p *program) writeWorthTable(ctx context.Context, s ownedStore, asked query.Programme) error {
	of := query.Table{WebsiteID: asked.WebsiteID, GoalID: asked.GoalID, Metric: asked.Metric}
	table, err := s.Tables().OpenTable(ctx, tables.FindTable("worth"), s.owned, of)
	if err != nil {
		return err
	}
	_, err = table.WriteFile(ctx, p.stdout, tables.CSV)
	return err
}

// websiteOr returns the given website of an account, or the only one if none is given.
func websiteOr(given int64, owned *catalogue.AccountResources) (int64, error) {
	ids := slices.Sorted(maps.Keys(owned.Websites))
	switch {
	case slices.Contains(ids, given):
		return given, nil
	case given == 0 && len(ids) == 1:
		return ids[0], nil
	}
	return 0, usageError{fmt.Errorf("--website must be one of %s", strings.Trim(fmt.Sprint(ids), "[]"))}
}

func (p *program) outcomeCommand() *cobra.Command {
	var shipped int64
	var dropped, excluded, reset bool
	o := catalogue.Outcome{}
	kinds := []string{catalogue.Shipped, catalogue.Dropped, catalogue.Excluded, "reset"}
	cmd := newCommand("outcome", subjectArgs, nil)
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if !slices.ContainsFunc(kinds, cmd.Flags().Changed) {
			return usageError{errors.New("outcome: needs one of --shipped, --dropped, --excluded and --reset")}
		}
		return onlyOne(cmd, kinds...)
	}
	bounds.Var(cmd.Flags(), &shipped, "shipped", 0, 0, bounds.MaxID, "id of the variation that all visitors see now")
	cmd.Flags().BoolVar(&dropped, catalogue.Dropped, false, "no variation was kept")
	cmd.Flags().BoolVar(&excluded, catalogue.Excluded, false,
		"the campaign says nothing about the others; needs --note")
	cmd.Flags().BoolVar(&reset, "reset", false, "forget the record")
	cmd.Flags().StringVar(&o.Date, "date", "", "day of the outcome, such as 2026-03-02; default: today")
	cmd.Flags().StringVar(&o.Note, "note", "", "note, such as the reason")
	return p.onAccount(cmd, func(ctx context.Context, s ownedStore, args []string) error {
		of, err := parseSubject("outcome", args, s.owned.FindID)
		if err != nil || of.Kind == schema.SubjectWidget && of.ExperimentID == 0 {
			return usageError{cmp.Or(err, errors.New("outcome: a widget has none; name one of its experiments"))}
		}
		o.Date = cmp.Or(o.Date, time.Now().UTC().Format(time.DateOnly))
		recorded := &o
		switch {
		case reset:
			recorded = nil
		case dropped:
			o.Outcome = catalogue.Dropped
		case excluded:
			o.Outcome = catalogue.Excluded
		default:
			o.Outcome, o.VariationID = catalogue.Shipped, shipped
		}
		found, err := s.Catalogue.SetOutcome(ctx, s.owned.ID, 0, of, recorded)
		if err == nil && !found {
			err = fmt.Errorf("outcome: no %s %s", args[0], args[1])
		}
		return err
	})
}
