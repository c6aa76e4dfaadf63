package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"lifthouse/schema/catalogue"

	"github.com/spf13/cobra"
)

func (p *program) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make the keys that API requests carry",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.tokenCreateCommand())
	return cmd
}

func (p *program) tokenCreateCommand() *cobra.Command {
	var token catalogue.Token
	var scopes []string
	var expires time.Duration
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a token and print it, once",
		Long:  "Create prints a new token. Only its digest is kept: it cannot be shown again.",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, scope := range scopes {
				token.Scopes = append(token.Scopes, catalogue.Scope(scope))
			}
			if expires < 0 {
				return usageError{errors.New("--expires: want a duration such as 720h")}
			}
			if expires > 0 {
				at := time.Now().UTC().Add(expires).Truncate(time.Second)
				token.ExpiresAt = &at
			}
			return p.withStore(cmd.Context(), func(ctx context.Context, s *store) error {
				return p.createToken(ctx, s, token)
			})
		},
	}
	flags := cmd.Flags()
	flags.Int64Var(&token.AccountID, "account", 0, "account it is of; may be left out where there is only one")
	flags.StringSliceVar(&scopes, "scope", []string{string(catalogue.ScopeRead)}, "what it may do: read, write (and read), or ingest")
	flags.Int64Var(&token.WebsiteID, "website", 0, "the only website it may see; required for ingest")
	flags.StringVar(&token.Name, "name", "", "what it is for")
	flags.DurationVar(&expires, "expires", 0, "how long it is good for, such as 720h; 0: until it is revoked")
	return cmd
}

func (p *program) createToken(ctx context.Context, s *store, token catalogue.Token) error {
	if token.AccountID == 0 {
		account, err := onlyAccount(s.catalogue.Snapshot())
		if err != nil {
			return err
		}
		token.AccountID = account
	}
	secret, _, err := s.catalogue.CreateToken(ctx, token)
	if err != nil {
		return err
	}
	p.say("%s", secret)
	return nil
}

func onlyAccount(s *catalogue.Snapshot) (int64, error) {
	accounts := s.Accounts()
	switch len(accounts) {
	case 0:
		return 0, errors.New("there is no account yet: declare one with lifthouse apply -f catalog.yaml")
	case 1:
		return accounts[0].ID, nil
	}
	var names []string
	for _, a := range accounts {
		names = append(names, fmt.Sprintf("%d (%s)", a.ID, a.Name))
	}
	return 0, usageError{fmt.Errorf("--account: which of %s?", strings.Join(names, ", "))}
}
