package main

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/engine/render"
	"lifthouse/schema/catalogue"

	"github.com/spf13/cobra"
)

const auditHelp = `Audit shows who changed what of the catalogue, the last changes first: definitions and tokens that were
created, changed, archived or revoked, and campaigns and widgets that became active or inactive. A change
was made by a token of the API, by its number and name, or by a command and the user who gave it.
The log is kept for good.`

// mostAudited bounds --limit: what a terminal or a pipe takes at once.
const maxAudited = 1_000_000

func (p *program) auditCommand() *cobra.Command {
	var account int64
	var since time.Duration
	var limit int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show who changed what of the catalogue",
		Long:  auditHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case limit < 1 || limit > maxAudited:
				return usageError{fmt.Errorf("--limit %d: want 1 to %d", limit, maxAudited)}
			case since < 0:
				return usageError{fmt.Errorf("--since %s: want a time back, such as 720h", since)}
			case account < 0:
				return usageError{fmt.Errorf("--account %d: want an account's id, or 0 for all", account)}
			}
			var from time.Time
			if from = time.Unix(0, 0); since > 0 {
				from = time.Now().Add(-since)
			}
			return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
				changes, err := s.Catalogue.Audit(ctx, account, from, limit)
				if err != nil {
					return err
				}
				if asJSON {
					return json.NewEncoder(p.out).Encode(changes)
				}
				return p.showAudit(changes)
			})
		},
	}
	cmd.Flags().Int64Var(&account, "account", 0, "whose changes; 0: of all accounts")
	cmd.Flags().DurationVar(&since, "since", 0, "how far back, such as 720h; 0: all")
	cmd.Flags().IntVar(&limit, "limit", 100, "most changes to show")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON, with what each change made of the definition or the state")
	return cmd
}

func (p *program) showAudit(changes []catalogue.AuditEntry) error {
	if len(changes) == 0 {
		p.say("Nothing was changed.")
		return nil
	}
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "time\taccount\twhat\tid\tchange\tby")
	for i := range changes {
		c := &changes[i]
		_, _ = fmt.Fprintf(table, "%s\t%d\t%s\t%d\t%s\t%s\n", c.At.Format(time.RFC3339), c.AccountID, c.Kind, c.ID, c.Change, render.Printable(c.By))
	}
	return table.Flush()
}
