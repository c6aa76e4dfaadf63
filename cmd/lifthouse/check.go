package main

import (
	"context"
	"errors"
	"fmt"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/check"
	"lifthouse/engine/embedded"
	"lifthouse/schema"

	"github.com/spf13/cobra"
)

func (p *program) checkCommand() *cobra.Command {
	r := &check.Report{To: p.stdout}
	cmd := newCommand("check", noArgs, func(cmd *cobra.Command, _ []string) error { return p.runChecks(cmd.Context(), r) })
	p.serveFlags(cmd)
	cmd.Flags().BoolVar(&r.Deep, "deep", false, "read every stored part, and compare the facts of all visitors with "+
		"their events")
	return cmd
}

func (p *program) runChecks(ctx context.Context, r *check.Report) error {
	if p.running == nil { // otherwise the client has printed its settings
		var rows [][]any
		for _, s := range p.settings {
			rows = append(rows, []any{s.Name, shownValue(s), fmt.Sprintf("(%s)", s.Source)})
		}
		_ = p.printTable(rows)
		p.printLine("")
		if _, err := p.loadTLSConfig(); err != nil {
			r.Fault("server", err)
		}
		for _, warning := range p.settingWarnings() {
			r.Note("server", "%s", warning)
		}
	}
	err := p.checkStore(ctx, r)
	if errors.As(err, new(*exitError)) || err == nil && r.Failed {
		return &exitError{exitFailed}
	}
	return err
}

// checkStore checks the store without changing its tables. If another process holds the store, it lets that process
// check it.
func (p *program) checkStore(ctx context.Context, r *check.Report) error {
	if p.running != nil {
		r.CheckServedStore(ctx, p.running)
		return nil
	}
	address, err := p.storeAddress()
	if err != nil {
		return err
	}
	if dir := address.Dir; dir != "" {
		if isEmpty(dir) {
			r.Note("store", "%s does not exist yet; lifthouse serve creates it", dir)
			return nil
		}
		var held *embedded.Engine
		err := p.awaitHolder(ctx, commandTimeout, func() (err error) {
			held, address.Options, err = app.OpenEmbedded(ctx, dir, p.opening.Fsync, 0)
			return err
		})
		if locked, is := errors.AsType[*embedded.LockedError](err); is {
			return p.checkByHolder(ctx, r, locked)
		}
		if err != nil {
			r.Fault("store", err)
			return nil
		}
		defer func() { _ = held.Close() }()
	}
	conn, err := schema.OpenConnection(ctx, address)
	if err != nil {
		r.Fault("store",
			fmt.Errorf("%w; check the address %s, and that the server runs", err, schema.ShowAddress(p.address)))
		return nil
	}
	defer func() { _ = conn.Close() }()
	r.CheckStore(ctx, conn, address)
	return nil
}

// checkByHolder lets the process that holds the store check it.
func (p *program) checkByHolder(ctx context.Context, r *check.Report, locked *embedded.LockedError) error {
	code, err := p.forwardCommand(ctx, locked)
	if err != nil {
		r.Fault("store", fmt.Errorf("%w, and it accepts no commands: %w", locked, err))
		return nil
	}
	if code != exitOK {
		return &exitError{code}
	}
	return nil
}
