package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/config"
	"lifthouse/engine/query"
	"lifthouse/loadgen/demo"
	"lifthouse/schema/catalogue"
)

// completion is a word that the shell may complete, with its description after a tab.
type completion = string

// idCompletions returns the ids of resources with their names.
func idCompletions[R any](resources map[int64]R, name func(R) string) (found []completion) {
	for _, id := range slices.Sorted(maps.Keys(resources)) {
		found = append(found, fmt.Sprintf("%d\t%s", id, name(resources[id])))
	}
	return found
}

// completeFrom returns a function that completes an argument or a flag from the catalogue. If another process holds the
// store, that process completes.
func (p *program) completeFrom(list func(args []string,
	owned *catalogue.AccountResources) []completion,
) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (found []completion, directive cobra.ShellCompDirective) {
		collect := func(_ context.Context, s *app.Store) error {
			for _, owned := range s.Catalogue.Snapshot().AllAccounts() {
				found = append(found, list(args, owned)...)
			}
			return nil
		}
		directive = cobra.ShellCompDirectiveNoFileComp
		if p.running != nil {
			_ = collect(cmd.Context(), p.running)
			return found, directive
		}
		output, err := os.CreateTemp("", "lifthouse-completion-")
		if err != nil {
			return nil, directive
		}
		defer func() { _ = errors.Join(output.Close(), os.Remove(output.Name())) }()
		quiet, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil || p.resolveSettings(cmd) != nil {
			return nil, directive
		}
		defer func() { _ = quiet.Close() }()
		p.useDemo()
		asking := *p
		asking.stdin, asking.stdout, asking.stderr = quiet, output, quiet
		if asking.withStore(cmd.Context(), collect) != nil {
			return nil, directive
		}
		text, _ := os.ReadFile(output.Name()) // written by the other process, with its own directive
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, ":") {
				found = append(found, line)
			}
		}
		return found, directive
	}
}

// completeSubject completes the arguments of report: a kind, and an id.
func completeSubject(args []string, owned *catalogue.AccountResources) (found []completion) {
	switch {
	case len(args) != 1:
	case args[0] == "campaign":
		return idCompletions(owned.Campaigns, func(c catalogue.LiveCampaign) string { return c.Name })
	case args[0] == "widget":
		return idCompletions(owned.Widgets, func(w catalogue.LiveWidget) string { return w.Name })
	case args[0] == "experiment":
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
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]completion,
		cobra.ShellCompDirective,
	) {
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
		return idCompletions(owned.Goals, func(g catalogue.Goal) string { return g.Name })
	}))
	registerCompletion(cmd, "account", p.completeFrom(func(_ []string, owned *catalogue.AccountResources) []completion {
		return []completion{fmt.Sprintf("%d\t%s", owned.ID, owned.Name)}
	}))
	registerCompletion(cmd, "metric", fixedCompletions(query.Comparable[query.ExperimentResults]...))
	registerCompletion(cmd, "dimension", fixedCompletions(query.Dimensions...))
	registerCompletion(cmd, "interval", fixedCompletions(query.Intervals...))
	names := query.FilterNames()
	for i, name := range names {
		names[i] = name + "="
	}
	registerCompletion(cmd, "filter", func(*cobra.Command, []string, string) ([]completion, cobra.ShellCompDirective) {
		return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
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

// useDemo selects the demo store in the working directory if no store is named and the default store does not exist. It
// reports whether it did.
func (p *program) useDemo() bool {
	if p.running != nil || slices.ContainsFunc(p.settings,
		func(s *config.Setting) bool { return s.Name == storeFlag && s.Source != config.FromDefault }) {
		return false
	}
	fallback, err := p.storeAddress()
	claimed := demo.IsClaimed(p.absolutePath(strings.TrimPrefix(demoStore, "embedded:")))
	if err != nil || fallback.Dir == "" || !isEmpty(fallback.Dir) || !claimed {
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
