package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"lifthouse/cmd/internal/bounds"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/wording"

	"github.com/spf13/cobra"
)

// planFlags are the flags of lifthouse plan with the name of their parameter and their help.
var planFlags = []struct{ flag, parameter, help string }{
	{"campaign", "campaign", "id of a campaign whose rules count; only --visitors-per-day may be given with it"},
	{"goal", "goal", "id of the primary goal; default: that of most campaigns"},
	{"metric", "metric", "primary metric; default: goalConversionRate"},
	{"traffic", "traffic", "share of all traffic that takes part, in percent; default: that of the basis"},
	{"visitors-per-day", "visitorsPerDay", "visitors of the website a day; default: those of the basis"},
	{"share", "share", "shares of the variations in percent, control first; default: 50,50"},
	{"methodology", "methodology", "frequentist or bayesian; default: frequentist"},
	{"significance-level", "significanceLevel", "80, 90 or 95; default: 95"},
	{"power", "power", "chance to find the minimum effect, in percent; default: 80"},
	{"mde", "mde", "minimum effect in percent; default: 20"},
}

func (p *program) planCommand() *cobra.Command {
	var asJSON bool
	var website int64
	cmd := newCommand("plan", noArgs, nil)
	bounds.Var(cmd.Flags(), &website, "website", 0, 0, bounds.MaxID, "id of the website; required if there are several")
	values := map[string]*string{}
	for _, f := range planFlags {
		values[f.parameter] = cmd.Flags().String(f.flag, "", f.help)
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return p.onAccount(cmd, func(ctx context.Context, s ownedStore, _ []string) error {
		given := url.Values{}
		for name, value := range values {
			if *value != "" {
				given[name] = strings.Split(*value, ",")
			}
		}
		asked, err := query.ParseOutlook(given.Encode())
		if err != nil {
			return planFault(err)
		}
		asked.WebsiteID, err = websiteOr(website, s.owned)
		if err != nil {
			return err
		}
		found, err := s.Engine.ReadOutlook(ctx, asked)
		switch {
		case err != nil:
			return planFault(err)
		case asJSON:
			return p.writeJSON(found)
		}
		return p.printOutlook(found)
	})
}

// planFault returns an error of parameters as one of flags.
func planFault(err error) error {
	invalid, is := errors.AsType[*query.InvalidError](err)
	if !is {
		return err
	}
	for i := range invalid.Faults {
		for _, f := range planFlags {
			if f.parameter == invalid.Faults[i].Name {
				invalid.Faults[i].Name = "--" + f.flag
			}
		}
	}
	return usageError{invalid}
}

// printOutlook prints what an outlook says, and a row for each length.
func (p *program) printOutlook(o *result.Outlook) error {
	for _, sentence := range o.Sentences {
		p.printLine("%s", sentence)
	}
	if len(o.Weeks) == 0 {
		return nil
	}
	p.printLine("")
	worth := strings.TrimSpace("WORTH A WEEK " + o.Currency)
	rows := [][]any{{"WEEKS", "VISITORS", "LIFT FOUND", "WINS", "TRULY", worth}}
	for i := range o.Weeks {
		w := &o.Weeks[i]
		lift, value := "none", "not known"
		if w.MDE != nil {
			lift = wording.FormatPercent(*w.MDE, 1, true)
		}
		if w.WorthPerWeek != nil {
			value = result.FormatRounded(*w.WorthPerWeek)
		}
		weeks := strconv.Itoa(w.Weeks)
		if o.Best != nil && *o.Best == w.Weeks {
			weeks += " *"
		}
		rows = append(rows, []any{
			weeks, wording.FormatCount(w.Visitors), lift, fmt.Sprintf("%.0f %%", 100*w.WinRate.Observed),
			fmt.Sprintf("%.0f %%", 100*w.WinRate.Expected), value,
		})
	}
	return p.printTable(rows)
}
