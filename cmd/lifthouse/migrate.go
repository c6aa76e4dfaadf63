package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"

	"lifthouse/cmd/internal/app"
	"lifthouse/schema"

	"github.com/spf13/cobra"
)

const migrateHelp = `Migrate runs pending migrations. Every command that opens a store does the same. Several processes
can migrate a store at the same time.

The tables of a cluster have a different form: use --cluster NAME, or cluster=NAME in the address, which all other
commands then need, too. NAME is the name of the cluster in remote_servers of the servers.`

func (p *program) migrateCommand() *cobra.Command {
	var cluster string
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Run pending migrations of the tables",
		Long:  migrateHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.inCluster(cluster); err != nil {
				return err
			}
			return p.withStoreMade(cmd.Context(), func(context.Context, *app.Store) error {
				p.printLine("The tables are up to date.")
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&cluster, "cluster", "", "name of the ClickHouse cluster of the store")
	return cmd
}

// inCluster adds the name of a cluster to the address of the store.
func (p *program) inCluster(cluster string) error {
	switch {
	case cluster == "":
		return nil
	case strings.HasPrefix(p.address, "embedded:"):
		return usageError{errors.New("--cluster: an embedded store has no cluster; --store names ClickHouse servers")}
	case strings.Contains(p.address, "cluster="):
		return usageError{errors.New("--cluster: --store has a cluster already")}
	case strings.Contains(p.address, "?"):
		p.address += "&cluster=" + cluster
	default:
		p.address += "?cluster=" + cluster
	}
	return nil
}

const grantsHelp = `Grants prints SQL statements that create the database and two users with minimal privileges on the
ClickHouse servers that --store names: one user for serving and one for migrations. --apply executes the statements as
the user in the address, who must have the privileges to create users. The statements can be repeated.

Passwords are read from files, or generated and printed once. The statements have digests of the passwords only.`

// userFlags has the flags of a user.
type userFlags struct{ name, passwordFile string }

func (p *program) grantsCommand() *cobra.Command {
	var serving, migrating userFlags
	var apply bool
	cmd := &cobra.Command{
		Use:   "grants",
		Short: "Print or create the ClickHouse users that Lifthouse needs",
		Long:  grantsHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			address, err := p.storeAddress()
			if err != nil {
				return err
			}
			if address.Dir != "" {
				return usageError{errors.New("--store: an embedded store has no users; name ClickHouse servers, " +
					"clickhouse://host:9000/db")}
			}
			if serving.name == migrating.name || serving.name == "" || migrating.name == "" {
				return usageError{fmt.Errorf("--serving-user %q, --migrating-user %q: must be two different names",
					serving.name, migrating.name)}
			}
			return p.printOrApplyGrants(cmd.Context(), address, apply, serving, migrating)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&apply, "apply", false, "execute the statements")
	flags.StringVar(&serving.name, "serving-user", "lifthouse", "user for serve and all commands except migrate")
	flags.StringVar(&serving.passwordFile, "serving-password-file", "", "file with the password")
	flags.StringVar(&migrating.name, "migrating-user", "lifthouse_migrating", "user for migrate")
	flags.StringVar(&migrating.passwordFile, "migrating-password-file", "", "file with the password")
	return cmd
}

func (p *program) printOrApplyGrants(ctx context.Context, address schema.Address, apply bool, serving,
	migrating userFlags,
) error {
	servingUser, err := p.readUser(serving)
	if err != nil {
		return err
	}
	migratingUser, err := p.readUser(migrating)
	if err != nil {
		return err
	}
	statements, err := schema.Grants{
		Database: cmp.Or(address.Options.Auth.Database, "lifthouse"), Cluster: address.Cluster, Serving: servingUser,
		Migrating: migratingUser,
	}.SQLStatements()
	if err != nil {
		return err
	}
	if !apply {
		p.printLine("%s;", strings.Join(statements, ";\n\n"))
		return nil
	}
	// the database does not exist yet, and the statements name the cluster
	address.Options.Auth.Database, address.Cluster = "", ""
	conn, err := schema.OpenConnection(ctx, address)
	if err != nil {
		return err
	}
	for _, statement := range statements {
		if err := conn.Exec(ctx, statement); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", statement, err), conn.Close())
		}
	}
	p.printLine("The users %s and %s exist.", serving.name, migrating.name)
	return conn.Close()
}

// readUser reads the password of a user, or generates and prints one.
func (p *program) readUser(given userFlags) (schema.User, error) {
	if given.passwordFile == "" {
		password := rand.Text()
		p.printDiagnostic("password of %s (not shown again): %s", given.name, password)
		return schema.User{Name: given.name, Password: password}, nil
	}
	text, err := os.ReadFile(p.absolutePath(given.passwordFile))
	if err != nil {
		return schema.User{}, err
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" {
		return schema.User{}, usageError{fmt.Errorf("%s has no password", given.passwordFile)}
	}
	return schema.User{Name: given.name, Password: password}, nil
}
