package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/config"
	"lifthouse/cmd/internal/remote"
	"lifthouse/engine"
	"lifthouse/engine/embedded"
	"lifthouse/engine/query"
	"lifthouse/loadgen/demo"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
)

// completion is a word that the shell may complete, with its description after a tab.
type completion = string

func newCompletion(id int64, name string) completion { return fmt.Sprintf("%d\t%s", id, name) }

// completeFrom returns a function that completes an argument or a flag from the
// catalogue. If another process holds the store, that process completes.
func (p *program) completeFrom(list func(args []string, owned *catalogue.AccountResources) []completion) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]completion, cobra.ShellCompDirective) {
		var found []completion
		collect := func(s *app.Store) {
			for _, owned := range s.Catalogue.Snapshot().AllAccounts() {
				found = append(found, list(args, owned)...)
			}
		}
		if p.running != nil {
			collect(p.running)
			return found, cobra.ShellCompDirectiveNoFileComp
		}
		if p.resolveSettings(cmd) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		p.useDemo()
		address, err := schema.ParseAddress(p.address, p.getenv)
		if err != nil || address.Dir != "" && isEmpty(p.absolutePath(address.Dir)) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		s, err := p.openStore(cmd.Context())
		var locked *embedded.LockedError
		switch {
		case errors.As(err, &locked):
			found = p.completedBy(cmd.Context(), locked)
		case err == nil:
			collect(s)
			_ = s.Close()
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// completedBy returns the completions of the process that holds the store.
func (p *program) completedBy(ctx context.Context, holder *embedded.LockedError) []completion {
	out, in, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer func() { _ = out.Close() }()
	quiet, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = quiet.Close() }()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = remote.RunCommand(ctx, filepath.Join(holder.Dir, remote.SocketName), remote.Command{Dir: p.dir, Args: p.args, Env: map[string]string{}, In: quiet, Out: in, Err: quiet})
		_ = in.Close()
	}()
	var found []completion
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if line := lines.Text(); line != "" && !strings.HasPrefix(line, ":") { // the directive of the other process
			found = append(found, line)
		}
	}
	<-done
	return found
}

// completeSubject completes the arguments of report: a kind, and an id.
func completeSubject(args []string, owned *catalogue.AccountResources) []completion {
	var found []completion
	if len(args) != 1 {
		return nil
	}
	switch args[0] {
	case "campaign":
		for _, c := range catalogue.ByID(owned.Campaigns) {
			found = append(found, newCompletion(c.ID, c.Name))
		}
	case "widget":
		for _, w := range catalogue.ByID(owned.Widgets) {
			found = append(found, newCompletion(w.ID, w.Name))
		}
	case "experiment":
		for _, w := range catalogue.ByID(owned.Widgets) {
			for _, e := range w.Experiments {
				found = append(found, fmt.Sprintf("%d/%d\t%s: %s", w.ID, e.ID, w.Name, e.Name))
			}
		}
	}
	return found
}

// completeSubjects registers the completions of arguments that name a subject.
func (p *program) completeSubjects(cmd *cobra.Command) {
	ids := p.completeFrom(completeSubject)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]completion, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return []completion{"campaign", "widget", "experiment\tof a widget"}, cobra.ShellCompDirectiveNoFileComp
		}
		return ids(cmd, args, typed)
	}
}

// completeReport registers the completions of report.
func (p *program) completeReport(cmd *cobra.Command) {
	p.completeSubjects(cmd)
	registerCompletion(cmd, "goal", p.completeFrom(func(_ []string, owned *catalogue.AccountResources) []completion {
		var found []completion
		for _, g := range catalogue.ByID(owned.Goals) {
			found = append(found, newCompletion(g.ID, g.Name))
		}
		return found
	}))
	registerCompletion(cmd, "account", p.completeFrom(func(_ []string, owned *catalogue.AccountResources) []completion {
		return []completion{newCompletion(owned.ID, owned.Name)}
	}))
	registerCompletion(cmd, "metric", fixedCompletions(query.Comparable[query.ExperimentResults]...))
	registerCompletion(cmd, "dimension", fixedCompletions(engine.AttributeNames()...))
	registerCompletion(cmd, "interval", fixedCompletions(query.Intervals...))
	names := query.FilterNames()
	for i, name := range names {
		names[i] = name + "="
	}
	registerCompletion(cmd, "filter", func(*cobra.Command, []string, string) ([]completion, cobra.ShellCompDirective) {
		return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
}

// completeWebsite registers the completion of a flag with the id of a website.
func (p *program) completeWebsite(cmd *cobra.Command) {
	registerCompletion(cmd, "website", p.completeFrom(func(_ []string, owned *catalogue.AccountResources) []completion {
		var found []completion
		for _, w := range catalogue.ByID(owned.Websites) {
			found = append(found, newCompletion(w.ID, w.Domain))
		}
		return found
	}))
}

func fixedCompletions(words ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

// registerCompletion registers the completion of a flag of the command.
func registerCompletion(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // the command has no such flag
	}
}

// useDemo selects the demo store in the working directory if no store is named and the
// default store does not exist. It reports whether it did.
func (p *program) useDemo() bool {
	if p.running != nil || slices.ContainsFunc(p.settings, func(s *config.Setting) bool { return s.Name == storeFlag && s.Source != config.FromDefault }) {
		return false
	}
	fallback, err := schema.ParseAddress(p.address, p.getenv)
	demoAddress, demoErr := schema.ParseAddress(demoStore, p.getenv)
	if err != nil || demoErr != nil || !isEmpty(p.absolutePath(fallback.Dir)) || !demo.IsClaimed(p.absolutePath(demoAddress.Dir)) {
		return false
	}
	p.address = demoStore
	return true
}

// orDemo selects the demo store like useDemo, and prints a notice. It runs before a command that reads a store.
func (p *program) orDemo(*cobra.Command, []string) {
	if p.useDemo() {
		p.printDiagnostic("the folder has no ./data: this is the demo store (--store %s)", demoStore)
	}
}
