package main

import (
	"context"
	"errors"
	"strings"

	"lifthouse/cmd/internal/app"

	"github.com/spf13/cobra"
)

const migrateHelp = `Migrate runs the migrations that a store has not had. Every command that opens a store does so too, and several may
do it at once.

A cluster's tables have another form: --cluster NAME, or cluster=NAME in the address, which every other command then
needs too. NAME is the cluster's in the servers' remote_servers.`

func (p *program) migrateCommand() *cobra.Command {
	var cluster string
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the store's tables up to date",
		Long:  migrateHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.inCluster(cluster); err != nil {
				return err
			}
			return p.withStoreMade(cmd.Context(), func(context.Context, *app.Store) error {
				p.say("The tables are up to date.")
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&cluster, "cluster", "", "cluster of ClickHouse servers that shares the store")
	return cmd
}

// inCluster writes a cluster's name into the store's address.
func (p *program) inCluster(cluster string) error {
	switch {
	case cluster == "":
		return nil
	case strings.HasPrefix(p.address, "embedded:"):
		return usageError{errors.New("--cluster: an embedded store has no cluster; --store names ClickHouse servers")}
	case strings.Contains(p.address, "cluster="):
		return usageError{errors.New("--cluster: --store names one too")}
	case strings.Contains(p.address, "?"):
		p.address += "&cluster=" + cluster
	default:
		p.address += "?cluster=" + cluster
	}
	return nil
}
