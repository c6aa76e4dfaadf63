package main

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/bounds"
	"lifthouse/engine/render"
	"lifthouse/schema/catalogue"

	"github.com/spf13/cobra"
)

const auditHelp = `Audit prints the changes of the catalogue, the latest first: definitions and tokens that were created,
changed, archived or revoked, and campaigns and widgets that were started or stopped. The author is a token of the API (its
number and name), or a command and its user. The log is never deleted.`

// maxAudited is the maximum of --limit.
const maxAudited = 1_000_000

func (p *program) auditCommand() *cobra.Command {
	var account int64
	var since time.Duration
	var limit int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Print the changes of the catalogue and their authors",
		Long:  auditHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var from time.Time
			if from = time.Unix(0, 0); since > 0 {
				from = time.Now().Add(-since)
			}
			return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
				changes, err := s.Catalogue.ReadAuditLog(ctx, account, from, limit)
				if err != nil {
					return err
				}
				if asJSON {
					return json.NewEncoder(p.stdout).Encode(changes)
				}
				return p.showAudit(changes)
			})
		},
	}
	bounds.Var(cmd.Flags(), &account, "account", 0, 0, bounds.MaxID, "id of the account; 0: all accounts")
	bounds.Var(cmd.Flags(), &since, "since", 0, 0, bounds.MaxAge, "maximum age of the changes, such as 720h; 0: all")
	bounds.Var(cmd.Flags(), &limit, "limit", 100, 1, maxAudited, "maximum number of changes")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, with the definition or state after each change")
	return cmd
}

func (p *program) showAudit(changes []catalogue.AuditEntry) error {
	if len(changes) == 0 {
		p.printLine("There are no changes.")
		return nil
	}
	table := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "time\taccount\twhat\tid\tchange\tby")
	for i := range changes {
		c := &changes[i]
		_, _ = fmt.Fprintf(table, "%s\t%d\t%s\t%d\t%s\t%s\n", c.At.Format(time.RFC3339), c.AccountID, c.Kind, c.ID, c.Change, render.PrintableText(c.By))
	}
	return table.Flush()
}
