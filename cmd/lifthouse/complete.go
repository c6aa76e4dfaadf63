package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/remote"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"

	"github.com/spf13/cobra"
)

// idsName is the name of the hidden command that lists ids for the completion of shells.
const idsName = "ids"

// subjectKinds are the kinds of arguments that name a subject.
var subjectKinds = []string{"campaign", "widget", "experiment"}

// completionTime is how long a shell waits for the ids of a running server.
const completionTime = 300 * time.Millisecond

// completeSubjects makes shells complete the arguments of a command that name a campaign, a widget or an experiment.
func (p *program) completeSubjects(cmd *cobra.Command) *cobra.Command {
	cmd.ValidArgsFunction = func(
		cmd *cobra.Command, args []string, begun string,
	) ([]cobra.Completion, cobra.ShellCompDirective) {
		var found []cobra.Completion
		switch len(args) {
		case 0:
			found = subjectKinds
		case 1:
			found = p.askIDs(cmd.Context(), args[0])
		}
		var offered []cobra.Completion
		for _, one := range found {
			if strings.HasPrefix(one, begun) {
				offered = append(offered, one)
			}
		}
		return offered, cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

// askIDs returns the ids of a kind with their names, which the server that holds the store knows. Without a server,
// there are none: to open a store takes too long.
func (p *program) askIDs(ctx context.Context, kind string) []cobra.Completion {
	address, err := p.storeAddress()
	if err != nil || address.Dir == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	read, write, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer func() { _ = read.Close() }()
	go func() {
		c := remote.Command{Dir: p.dir, Args: []string{idsName, kind}, In: p.stdin, Out: write, Err: p.stderr}
		_, _ = remote.RunCommand(ctx, filepath.Join(address.Dir, remote.SocketName), c)
		_ = write.Close()
	}()
	defer context.AfterFunc(ctx, func() { _ = read.Close() })()
	var found []cobra.Completion
	for lines := bufio.NewScanner(read); lines.Scan(); {
		id, name, _ := strings.Cut(lines.Text(), "\t")
		found = append(found, cobra.CompletionWithDesc(id, name))
	}
	return found
}

// idsCommand lists the ids of a kind with their names, a line each.
func (p *program) idsCommand() *cobra.Command {
	cmd := newCommand(idsName, oneArg, func(cmd *cobra.Command, args []string) error {
		return p.withStore(cmd.Context(), func(_ context.Context, s *app.Store) error {
			for _, owned := range s.Catalogue.Snapshot().AllAccounts() {
				p.printIDs(owned, args[0])
			}
			return nil
		})
	})
	cmd.Hidden = true
	return cmd
}

// printIDs prints the ids of a kind. A campaign whose id is that of its key is named by the key.
func (p *program) printIDs(owned *catalogue.AccountResources, kind string) {
	add := func(id, name string) {
		words := strings.FieldsFunc(name, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) })
		p.printLine("%s\t%s", id, strings.Join(words, " "))
	}
	for _, c := range catalogue.ByID(owned.Campaigns) {
		id := fmt.Sprint(c.ID)
		if c.ID >= schema.FirstKeyID {
			id = c.Key
		}
		if kind == "campaign" {
			add(id, c.Name)
		}
	}
	for _, w := range catalogue.ByID(owned.Widgets) {
		if kind == "widget" {
			add(fmt.Sprint(w.ID), w.Name)
		}
		for _, e := range w.Experiments {
			if kind == "experiment" {
				add(fmt.Sprintf("%d/%d", w.ID, e.ID), w.Name+": "+e.Name)
			}
		}
	}
}
