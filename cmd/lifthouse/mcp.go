package main

import (
	"context"
	"sync"

	"github.com/spf13/cobra"

	"lifthouse/api"
	"lifthouse/api/mcp"
	"lifthouse/cmd/internal/terminal"
)

func (p *program) mcpCommand() *cobra.Command {
	cmd := newCommand("mcp", noArgs, nil)
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

func (p *program) answerMCP(ctx context.Context, s ownedStore, _ []string) error {
	p.serving.API = api.DefaultOptions
	p.serving.API.Release, p.serving.API.Timeout = buildVersion(), p.opening.Limits.Time
	following, stop := context.WithCancel(ctx)
	var background sync.WaitGroup
	if p.running == nil { // no server keeps the store up to date
		background.Go(func() { s.FollowChanges(following) })
	}
	defer background.Wait()
	defer stop()
	return s.MCP(following, p.serving.API).ServeStreams(ctx, mcp.Caller{AccountID: s.owned.ID}, p.stdin, p.stdout)
}
