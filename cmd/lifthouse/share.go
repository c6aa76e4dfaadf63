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
	"github.com/spf13/pflag"
)

const shareHelp = `Share prints a link to the page of a campaign, a widget or an experiment of a widget. Everybody with the link can read
this page, without a token, until the link expires or is revoked, and nothing else. Only a digest of the link is stored, so
it cannot be shown again. 'lifthouse token list' lists the links, and 'lifthouse token revoke' revokes one.

  lifthouse share campaign 12 --expires 30d
  lifthouse share widget 7 --name "for the board"
  lifthouse share experiment 7/2`

func (p *program) shareCommand() *cobra.Command {
	var name string
	var expires time.Duration
	var subject catalogue.PageSubject
	cmd := &cobra.Command{
		Use:   "share campaign ID | widget ID | experiment WIDGET/ID",
		Short: "Create a link to one page, which needs no token",
		Long:  shareHelp,
		Args: func(_ *cobra.Command, args []string) error {
			named, err := report.ParseSubject("share", args)
			if err != nil {
				return usageError{err}
			}
			subject = catalogue.PageSubject{WidgetID: named.SubjectID, ExperimentID: named.ExperimentID}
			if named.Operation == query.CampaignResults {
				subject = catalogue.PageSubject{CampaignID: named.SubjectID}
			}
			return nil
		},
	}
	flags := cmd.Flags()
	bounds.Var(flags, &expires, "expires", catalogue.DefaultShareLifetime, time.Second, catalogue.MaxShareLifetime, "lifetime, such as 30d or 12h")
	flags.StringVar(&name, "name", "", "name that describes its use")
	p.publicURLFlag(flags)
	p.completeSubjects(cmd)
	return p.onAccount(cmd, func(ctx context.Context, s *app.Store, owned *catalogue.AccountResources, _ []string) error {
		secret, made, err := s.Catalogue.CreateToken(ctx, catalogue.NewShare(owned.ID, name, subject, expires))
		if err != nil {
			return fmt.Errorf("share: %w", err)
		}
		base := cmp.Or(p.serving.API.PublicURL, p.server.API.PublicURL)
		if base == "" {
			base = "http://" + app.DefaultListen
			p.printDiagnostic("the link is for this machine; if people open the dashboard at another URL, name it with --%s", publicURLFlag)
		}
		p.printLine("%s", owned.ShareLink(base, made.Shared, secret))
		p.printDiagnostic("the link expires at %s; 'lifthouse token revoke %d' revokes it", made.ExpiresAt.Format(time.RFC3339), made.ID)
		return nil
	})
}

// publicURLFlag adds the base of the links that a command makes.
func (p *program) publicURLFlag(flags *pflag.FlagSet) {
	flags.StringVar(&p.serving.API.PublicURL, publicURLFlag, "", "URL at which people open the dashboard; default: that of the running server, or http://"+app.DefaultListen)
}
