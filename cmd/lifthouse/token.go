package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/bounds"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/documents"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (p *program) tokenCreateCommand() *cobra.Command {
	var token catalogue.Token
	var scopes []string
	var expires time.Duration
	var asLink bool
	cmd := newCommand("token-create", noArgs, nil)
	flags := cmd.Flags()
	flags.StringSliceVar(&scopes, "scope", []string{string(catalogue.ScopeRead)},
		"scopes: read, write (includes read), admin (includes write), or ingest")
	completeFlag(cmd, "scope", catalogue.Scopes...)
	bounds.Var(flags, &token.WebsiteID, "website", 0, 0, bounds.MaxID,
		"id of the only website that it may access; required for ingest")
	flags.StringVar(&token.Name, "name", "", "name that describes its use")
	bounds.Var(flags, &expires, "expires", 0, 0, bounds.MaxAge, "lifetime, such as 30d or 12h; 0: until it is revoked")
	flags.BoolVar(&asLink, "link", false, "print a link that signs in on the page, in the place of the token")
	p.publicURLFlag(flags)
	return p.onAccount(cmd, func(ctx context.Context, s ownedStore, _ []string) error {
		for _, scope := range scopes {
			token.Scopes = append(token.Scopes, catalogue.Scope(scope))
		}
		if asLink && slices.Contains(token.Scopes, catalogue.ScopeIngest) {
			return usageError{errors.New("--link: a token of the scope ingest cannot sign in")}
		}
		token.AccountID = s.owned.ID
		token.SetLifetime(expires)
		secret, _, err := s.Catalogue.CreateToken(ctx, token)
		if err != nil {
			return fmt.Errorf("token: %w", err)
		}
		if asLink {
			p.warnOfLocalLink()
			secret = catalogue.SignInLink(p.publicURL(), token.WebsiteID, secret)
		}
		p.printLine("%s", secret)
		return nil
	})
}

// warnOfLocalLink says that links are only for this machine if no other address of the dashboard is known.
func (p *program) warnOfLocalLink() {
	if p.serving.API.PublicURL == "" && p.server.API.PublicURL == "" {
		p.printDiagnostic("the link is for this machine; if people open the dashboard at another URL, name it "+
			"with --%s", publicURLFlag)
	}
}

func (p *program) tokenListCommand() *cobra.Command {
	return p.onAccount(newCommand("token-list", noArgs, nil), func(_ context.Context, s ownedStore, _ []string) error {
		rows := [][]any{{"ID", "NAME", "SCOPES", "WEBSITE", "CREATED", "EXPIRES"}}
		for _, token := range s.Catalogue.Snapshot().AccountTokens(s.owned.ID) {
			scopes := make([]string, len(token.Scopes))
			for i, scope := range token.Scopes {
				scopes[i] = string(scope)
			}
			website, expires := "all", "never"
			switch {
			case token.ReadoutID != "":
				website = "readout " + token.ReadoutID
			case token.Shared != nil:
				website = token.Shared.Arguments()
			case token.WebsiteID != 0:
				website = strconv.FormatInt(token.WebsiteID, 10)
			}
			if token.ExpiresAt != nil {
				expires = token.ExpiresAt.Format(time.RFC3339)
				if !time.Now().Before(*token.ExpiresAt) {
					expires += " (expired)"
				}
			}
			rows = append(rows, []any{
				token.ID, token.Name, strings.Join(scopes, ","), website, token.CreatedAt.Format(time.DateOnly),
				expires,
			})
		}
		return p.printList(rows, "Account %d has no token; create one with lifthouse token create.", s.owned.ID)
	})
}

func (p *program) tokenRevokeCommand() *cobra.Command {
	var id int64
	cmd := newCommand("token-revoke", func(cmd *cobra.Command, args []string) (err error) {
		if err := oneArg(cmd, args); err != nil {
			return err
		}
		id, err = strconv.ParseInt(args[0], 10, 64)
		if err != nil || id < 1 {
			return usageError{fmt.Errorf("token revoke: id %q: must be an integer from 1; lifthouse token list "+
				"prints the ids", args[0])}
		}
		return nil
	}, nil)
	return p.onAccount(cmd, func(ctx context.Context, s ownedStore, _ []string) error {
		revoked, err := s.Catalogue.RevokeToken(ctx, s.owned.ID, id)
		if err != nil {
			return err
		}
		if !revoked {
			return fmt.Errorf("account %d has no token %d; lifthouse token list prints its tokens", s.owned.ID, id)
		}
		p.printLine("Token %d of account %d is revoked.", id, s.owned.ID)
		return nil
	})
}

// ownedStore is a store, and an account that it has.
type ownedStore struct {
	*app.Store
	owned *catalogue.AccountResources
}

// onAccount makes a command do work on the store and on the account that its flag --account names.
func (p *program) onAccount(cmd *cobra.Command,
	work func(ctx context.Context, s ownedStore, args []string) error,
) *cobra.Command {
	var account int64
	bounds.Var(cmd.Flags(), &account, "account", 0, 0, bounds.MaxID, "id of the account; required if there are several")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
			id, err := accountOr(account, s.Catalogue.Snapshot())
			if err != nil {
				return err
			}
			return work(ctx, ownedStore{s, s.Catalogue.Snapshot().AccountResources(id)}, args)
		})
	}
	return cmd
}

// accountOr returns the given account, or the only one if none is given.
func accountOr(given int64, s *catalogue.Snapshot) (int64, error) {
	accounts := s.AllAccounts()
	var names []string
	for _, a := range accounts {
		if a.ID == given || given == 0 && len(accounts) == 1 {
			return a.ID, nil
		}
		names = append(names, fmt.Sprintf("%d (%s)", a.ID, a.Name))
	}
	switch {
	case len(accounts) == 0:
		return 0, errors.New("there is no account yet: make one with lifthouse source add or lifthouse apply")
	case given != 0:
		return 0, fmt.Errorf("--account %d: no such account; it must be one of %s", given, strings.Join(names, ", "))
	}
	return 0, usageError{fmt.Errorf("--account is required, one of %s", strings.Join(names, ", "))}
}

func (p *program) shareCommand() *cobra.Command {
	var name string
	var expires time.Duration
	cmd := newCommand("share", func(cmd *cobra.Command, args []string) error {
		if len(args) == 2 && (args[0] == "readout" || args[0] == "website") {
			return nil
		}
		return subjectArgs(cmd, args)
	}, nil)
	flags := cmd.Flags()
	bounds.Var(flags, &expires, "expires", catalogue.DefaultShareLifetime, time.Second, catalogue.MaxShareLifetime,
		"lifetime, such as 30d or 12h")
	flags.StringVar(&name, "name", "", "name that describes its use")
	p.publicURLFlag(flags)
	return p.onAccount(cmd, func(ctx context.Context, s ownedStore, args []string) error {
		share, err := newShare(ctx, s, args, name, expires)
		if err != nil {
			return err
		}
		secret, made, err := s.Catalogue.CreateToken(ctx, share)
		if err != nil {
			return fmt.Errorf("share: %w", err)
		}
		p.warnOfLocalLink()
		switch {
		case made.Shared == nil:
			p.printLine("%s", catalogue.SignInLink(p.publicURL(), made.WebsiteID, secret))
		case made.ReadoutID != "":
			p.printLine("%s", catalogue.ReadoutLink(p.publicURL(), made.ReadoutID, secret))
		default:
			p.printLine("%s", s.owned.ShareLink(p.publicURL(), made.Shared, secret))
		}
		p.printDiagnostic("the link expires at %s; 'lifthouse token revoke %d' revokes it",
			made.ExpiresAt.Format(time.RFC3339), made.ID)
		return nil
	})
}

// newShare returns the token of a link to what arguments name: a website, a readout, a campaign, a widget or an
// experiment. That of a website is an ordinary token, which reads this website only.
func newShare(
	ctx context.Context, s ownedStore, args []string, name string, expires time.Duration,
) (catalogue.Token, error) {
	switch args[0] {
	case "website":
		website, err := findWebsite(s.owned, args[1])
		token := catalogue.Token{
			AccountID: s.owned.ID, Name: name, Scopes: []catalogue.Scope{catalogue.ScopeRead}, WebsiteID: website,
		}
		token.SetLifetime(expires)
		return token, err
	case "readout":
		return newReadoutShare(ctx, s, args[1], name, expires)
	}
	subject, err := parseSubject("share", args, s.owned.FindID)
	return catalogue.NewShare(s.owned.ID, name, subject.IDs(), expires), err
}

// findWebsite returns the id of the website of an account with an id or a domain.
func findWebsite(owned *catalogue.AccountResources, given string) (int64, error) {
	var known []string
	for _, w := range catalogue.ByID(owned.Websites) {
		if given == strconv.FormatInt(w.ID, 10) || strings.EqualFold(given, w.Domain) {
			return w.ID, nil
		}
		known = append(known, fmt.Sprintf("%d (%s)", w.ID, w.Domain))
	}
	return 0, fmt.Errorf("share: website %q: must be one of %s", given, strings.Join(known, ", "))
}

// newReadoutShare returns the token of a link to a readout.
func newReadoutShare(
	ctx context.Context, s ownedStore, id, name string, expires time.Duration,
) (catalogue.Token, error) {
	found, err := s.Documents.FindDocument(ctx, s.owned.ID, 0, documents.Readout, id)
	switch {
	case err != nil:
		return catalogue.Token{}, err
	case found == nil:
		err = fmt.Errorf("share: %w", noReadout(id))
	case found.WithdrawnAt != nil:
		err = fmt.Errorf("share: the readout %s was withdrawn", id)
	}
	return catalogue.NewReadoutShare(s.owned.ID, name, id, expires), err
}

// publicURLFlag adds the base of the links that a command makes.
func (p *program) publicURLFlag(flags *pflag.FlagSet) {
	flags.StringVar(&p.serving.API.PublicURL, publicURLFlag, "",
		"URL at which people open the dashboard; default: that of the running server, or http://"+app.DefaultListen)
}
