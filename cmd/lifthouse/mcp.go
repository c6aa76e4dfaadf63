package main

import (
	"context"
	"sync"

	"github.com/spf13/cobra"

	"lifthouse/api"
	"lifthouse/api/mcp"
	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/terminal"
	"lifthouse/schema/catalogue"
)

const mcpHelp = `Mcp lets an AI assistant read results: it answers the Model Context Protocol over standard input and
output, until the input ends. The assistant starts the command. Its tools list experiments, get and break down results,
explain how a visitor counts, and compare given counts. All tools only read.

  claude mcp add lifthouse -- lifthouse mcp --store embedded:/var/lib/lifthouse

A running server executes the command. Without a server, the command holds an embedded store until it ends. A server
also answers the protocol at /mcp, with a token of scope read.`

func (p *program) mcpCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Let an AI assistant read results, over standard input and output",
		Long:  mcpHelp,
		Args:  noArgs,
	}
	p.onAccount(cmd, p.answerMCP)
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if terminal.Is(p.stdin) {
			p.printDiagnostic("an AI assistant starts this command; 'lifthouse mcp --help' describes how; Ctrl-D ends")
		}
		err := run(cmd, args)
		if cmd.Context().Err() != nil {
			err = nil // the assistant ended the command
		}
		return err
	}
	return cmd
}

func (p *program) answerMCP(ctx context.Context, s *app.Store, owned *catalogue.AccountResources, _ []string) error {
	p.serving.API = api.DefaultOptions
	p.serving.API.Release, p.serving.API.Timeout = buildVersion(), p.limits.Time
	following, stop := context.WithCancel(ctx)
	var background sync.WaitGroup
	if p.running == nil { // no server keeps the store up to date
		background.Go(func() { s.FollowChanges(following) })
	}
	defer background.Wait()
	defer stop()
	return s.MCP(following, p.serving.API).ServeStreams(ctx, mcp.Caller{AccountID: owned.ID}, p.stdin, p.stdout)
}
