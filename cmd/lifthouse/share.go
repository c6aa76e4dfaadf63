package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/bounds"
	"lifthouse/cmd/internal/report"
	"lifthouse/engine/query"
	"lifthouse/schema/catalogue"

	"github.com/spf13/cobra"
)

const shareHelp = `Share prints a link to the page of a campaign, a widget or an experiment of a widget. Everybody with the link can read
this page, without a token, until the link expires or is revoked, and nothing else. Only a digest of the link is stored, so
it cannot be shown again. 'lifthouse token list' lists the links, and 'lifthouse token revoke' revokes one.

  lifthouse share campaign 12 --expires 30d
  lifthouse share widget 7 --name "for the board"
  lifthouse share experiment 7/2`

func (p *program) shareCommand() *cobra.Command {
	var account int64
	var name string
	var expires time.Duration
	cmd := &cobra.Command{
		Use:   "share campaign ID | widget ID | experiment WIDGET/ID",
		Short: "Create a link to one page, which needs no token",
		Long:  shareHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			named, err := report.ParseSubject("share", args)
			if err != nil {
				return usageError{err}
			}
			subject := catalogue.PageSubject{WidgetID: named.SubjectID, ExperimentID: named.ExperimentID}
			if named.Operation == query.CampaignResults {
				subject = catalogue.PageSubject{CampaignID: named.SubjectID}
			}
			return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
				if account, err = accountOr(account, s.Catalogue.Snapshot()); err != nil {
					return err
				}
				return p.createShare(ctx, s, catalogue.NewShare(account, name, subject, expires))
			})
		},
	}
	accountFlag(cmd, &account)
	flags := cmd.Flags()
	bounds.Var(flags, &expires, "expires", catalogue.DefaultShareLifetime, time.Second, catalogue.MaxShareLifetime, "lifetime, such as 30d or 12h")
	flags.StringVar(&name, "name", "", "name that describes its use")
	flags.StringVar(&p.serving.API.PublicURL, publicURLFlag, "", "URL at which people open the dashboard; default: that of the running server, or http://"+app.DefaultListen)
	p.completeSubjects(cmd)
	return cmd
}

// createShare creates a share link and prints it.
func (p *program) createShare(ctx context.Context, s *app.Store, share catalogue.Token) error {
	secret, made, err := s.Catalogue.CreateToken(ctx, share)
	if err != nil {
		return fmt.Errorf("share: %w", err)
	}
	base := cmp.Or(p.serving.API.PublicURL, p.runningURL)
	if base == "" {
		base = "http://" + app.DefaultListen
		p.printDiagnostic("the link is for this machine; if people open the dashboard at another URL, name it with --%s", publicURLFlag)
	}
	p.printLine("%s", s.Catalogue.Snapshot().AccountResources(made.AccountID).ShareLink(base, made.Shared, secret))
	p.printDiagnostic("the link expires at %s; 'lifthouse token revoke %d' revokes it", made.ExpiresAt.Format(time.RFC3339), made.ID)
	return nil
}
