package main

import (
	"context"
	"errors"
	"strings"

	"lifthouse/cmd/internal/app"

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
