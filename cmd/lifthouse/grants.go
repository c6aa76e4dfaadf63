package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"

	"lifthouse/schema"

	"github.com/spf13/cobra"
)

const grantsHelp = `Grants prints the statements that make, on the ClickHouse servers that --store names, the database and two users with
the least that they need: one that serves, and one that migrates. --apply carries them out, by the address's own user, who
has to be allowed to; otherwise nothing is asked. It may be done again.

Passwords are read from files, and made up where none is named; those are shown once. The statements hold digests.`

// userFlags are how a user is given.
type userFlags struct{ name, passwordFile string }

func (p *program) grantsCommand() *cobra.Command {
	var serving, migrating userFlags
	var apply bool
	cmd := &cobra.Command{
		Use:   "grants",
		Short: "Print, or make, the ClickHouse users that Lifthouse needs",
		Long:  grantsHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			address, err := schema.ParseAddress(p.address, p.getenv)
			if err != nil {
				return usageError{err}
			}
			if address.Dir != "" {
				return usageError{errors.New("--store: an embedded store has no users; name ClickHouse servers, clickhouse://host:9000/db")}
			}
			if serving.name == migrating.name || serving.name == "" || migrating.name == "" {
				return usageError{fmt.Errorf("--serving-user %q, --migrating-user %q: want two names", serving.name, migrating.name)}
			}
			return p.grants(cmd.Context(), address, apply, serving, migrating)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&apply, "apply", false, "carry the statements out")
	flags.StringVar(&serving.name, "serving-user", "lifthouse", "user of serve and of every command but migrate")
	flags.StringVar(&serving.passwordFile, "serving-password-file", "", "file with its password")
	flags.StringVar(&migrating.name, "migrating-user", "lifthouse_migrating", "user of migrate")
	flags.StringVar(&migrating.passwordFile, "migrating-password-file", "", "file with its password")
	return cmd
}

func (p *program) grants(ctx context.Context, address schema.Address, apply bool, serving, migrating userFlags) error {
	servingUser, err := p.user(serving)
	if err != nil {
		return err
	}
	migratingUser, err := p.user(migrating)
	if err != nil {
		return err
	}
	statements, err := schema.Grants{
		Database: cmp.Or(address.Options.Auth.Database, "lifthouse"), Cluster: address.Cluster, Serving: servingUser, Migrating: migratingUser,
	}.Statements()
	if err != nil {
		return err
	}
	if !apply {
		p.say("%s;", strings.Join(statements, ";\n\n"))
		return nil
	}
	address.Options.Auth.Database, address.Cluster = "", "" // is about to be made; and the statements say their cluster
	conn, err := schema.Reach(ctx, address)
	if err != nil {
		return err
	}
	for _, statement := range statements {
		if err := conn.Exec(ctx, statement); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", statement, err), conn.Close())
		}
	}
	p.say("The users %s and %s are there.", serving.name, migrating.name)
	return conn.Close()
}

// user reads a user's password, or makes one up and tells it.
func (p *program) user(given userFlags) (schema.User, error) {
	if given.passwordFile == "" {
		password := rand.Text()
		p.complain("the password of %s, which is not shown again: %s", given.name, password)
		return schema.User{Name: given.name, Password: password}, nil
	}
	text, err := os.ReadFile(p.path(given.passwordFile))
	if err != nil {
		return schema.User{}, err
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" {
		return schema.User{}, usageError{fmt.Errorf("%s has no password", given.passwordFile)}
	}
	return schema.User{Name: given.name, Password: password}, nil
}
