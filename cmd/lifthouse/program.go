package main

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/bounds"
	"lifthouse/cmd/internal/config"
	"lifthouse/engine/fold"
	"lifthouse/engine/render"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
	"lifthouse/schema/secrets"
)

// Exit codes.
const (
	exitOK       = 0
	exitFailed   = 1
	exitUsage    = 2
	exitRejected = 3 // done, but some input was rejected
)

// exitDecisions are the exit codes of report --exit-code.
var exitDecisions = map[result.DecisionStatus]int{
	result.DecisionShip: exitOK, result.DecisionKeepRunning: 10, result.DecisionNoDifference: 11,
	result.DecisionRollBack: 12, result.DecisionInvalid: 13, result.DecisionNoWinner: 14,
}

// program is one invocation of a command. A shell runs it, or another process forwards it to the process that holds the
// store.
type program struct {
	stdin, stdout, stderr *os.File
	dir                   string // base of relative paths
	args                  []string
	getenv                func(string) string
	environ               []string          // complete environment, to find misspelt variables
	running               *app.Store        // store of the running server; nil: not forwarded
	server                app.ServerOptions // of the running server
	overdue               chan struct{}     // closed when a server did not stop in time; nil: a forwarded command
	stopMargin            time.Duration     // additional time to stop after running requests

	config   string      // file
	address  string      // of the store
	opening  app.Options // of the store
	serving  serveOptions
	settings config.Settings // resolved
}

// exitError ends the program with a code. Its cause has been printed.
type exitError struct{ code int }

// Error returns the code as text.
func (e *exitError) Error() string { return fmt.Sprintf("exit status %d", e.code) }

// usageError is an invalid command line or configuration.
type usageError struct{ error }

func (p *program) runCommand(ctx context.Context) int {
	isWrong := false
	for _, arg := range p.args {
		if !utf8.ValidString(arg) {
			p.printDiagnostic("%q: must be UTF-8", arg)
			isWrong = true
		}
	}
	if isWrong {
		return exitUsage
	}
	root := p.rootCommand()
	root.SetArgs(p.args)
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	var exit *exitError
	var usage usageError
	switch {
	case err == nil, errors.Is(err, syscall.EPIPE): // the reader of the output has gone
		return exitOK
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &usage):
		p.printDiagnostic("%v\nRun '%s --help' for the commands and their flags.", err, cmd.CommandPath())
		return exitUsage
	case ctx.Err() != nil:
		p.printDiagnostic("interrupted")
		return exitFailed
	}
	p.printDiagnostic("%v", err)
	var store *source.StoreError
	if errors.As(source.StoreFailure(ctx, err), &store) {
		hasRemedy := store.Fault == source.Full || store.Fault == source.Damaged
		if hasRemedy && !strings.Contains(err.Error(), store.Error()) {
			p.printDiagnostic("%v", store)
		}
	}
	return exitFailed
}

func (p *program) printDiagnostic(format string, args ...any) {
	_, _ = fmt.Fprintf(p.stderr, "lifthouse: "+format+"\n", args...)
}

func (p *program) printLine(format string, args ...any) {
	_, _ = fmt.Fprintf(p.stdout, format+"\n", args...)
}

const storeFlag = "store"

func (p *program) rootCommand() *cobra.Command {
	root := newCommand("lifthouse", knownCommand, showHelp)
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.Version = buildVersion()
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		author := strings.TrimSpace(cmd.CommandPath() + " " + p.getenv("USER"))
		cmd.SetContext(catalogue.WithAuthor(cmd.Context(), author))

		// Resolve the settings, and return all errors of the configuration.
		p.settings = config.SettingsOf(cmd)
		file := cmp.Or(p.config, p.getenv(config.FileVariable))
		if file != "" {
			file = p.absolutePath(file)
		}
		faults := slices.Concat(bounds.FlagFaults(cmd.Flags()), p.settings.LoadValues(file, p.getenv),
			p.serving.settingFaults())
		switch len(faults) {
		case 0:
			return nil
		case 1:
			return usageError{errors.New(faults[0])}
		default:
			return usageError{fmt.Errorf("invalid configuration:\n  %s", strings.Join(faults, "\n  "))}
		}
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{bounds.ExplainParseError(err)} })
	address := cmp.Or(p.getenv("LIFTHOUSE_STORE"), schema.DefaultStore)
	root.PersistentFlags().StringVar(&p.config, "config", "",
		"YAML file with settings, named like the flags ("+config.FileVariable+")")
	root.PersistentFlags().StringVar(&p.address, storeFlag, address,
		"address of the store: embedded:DIR, clickhouse://user:pass@host:9000/db, http://… or https://… "+
			"(LIFTHOUSE_STORE)")
	root.PersistentFlags().Lookup(storeFlag).DefValue = schema.ShowAddress(address)
	root.PersistentFlags().BoolVar(&p.opening.Fsync, "fsync", false,
		"sync files of an embedded store before events are acknowledged, so that they survive a loss of power; slower")
	root.PersistentFlags().StringVar(&p.opening.SecretFolder, "secret-folder", secrets.DefaultFolder,
		"folder with the files of secrets that --secret-file and the catalogue (secretFile) may name; empty: none")
	limits := &p.opening.Limits
	*limits = source.DefaultLimits
	bounds.Var(root.PersistentFlags(), &limits.Time, "query-timeout", limits.Time, 0, bounds.MaxWait,
		"maximum duration of a query, and of a request including waits; 0: no limit")
	bounds.Var(root.PersistentFlags(), &limits.Memory, "query-memory", limits.Memory, 0, bounds.MaxMemory,
		"maximum memory of a query in bytes; aggregations above half of it spill to disk; 0: no limit")
	bounds.Var(root.PersistentFlags(), &p.opening.MaxVisitorEvents, "max-visitor-events", fold.MaxVisitorEvents,
		100, bounds.MaxVisitorEvents,
		"events of a website above which a visitor is automated and counts nowhere; a change needs facts --rebuild")
	root.AddCommand(p.idsCommand(),
		p.serveCommand(), p.checkCommand(), p.demoCommand(), p.importCommand(), p.eventsCommand(), p.forgetCommand(),
		p.retainCommand(),
		p.backupCommand(), p.restoreCommand(), p.copyCommand(), p.applyCommand(), p.exportCommand(),
		commandGroup("token", p.tokenCreateCommand(), p.tokenListCommand(), p.tokenRevokeCommand()),
		commandGroup("source", p.sourceAddCommand(), p.sourceListCommand()),
		commandGroup("rates", p.ratesImportCommand(), p.ratesListCommand()),
		p.reconcileCommand(), p.discoverCommand(), p.completeSubjects(p.shareCommand()),
		p.completeSubjects(p.outcomeCommand()), p.planCommand(), p.worthCommand(), p.tablesCommand(), p.auditCommand(),
		p.completeSubjects(p.logCommand()), p.completeSubjects(p.noteCommand()),
		p.completeSubjects(p.readoutCommand()), p.pictureCommand(), p.opinionCommand(), p.migrateCommand(),
		p.readyCommand(), p.factsCommand(), p.completeSubjects(p.reportCommand()), p.askCommand(),
		p.completeSubjects(p.looksCommand()), p.compareCommand(),
		p.mcpCommand(),
		commandGroup("webhook", p.webhookListCommand(), p.webhookTestCommand(), p.webhookDeliveriesCommand(),
			p.webhookResendCommand()))
	return root
}

// helpFiles has a file for each command: its usage and what it does, a line each, and then its description.
//
//go:embed help/*.txt
var helpFiles embed.FS

// newCommand returns the command that a help file describes. run may be nil, and be set later.
func newCommand(name string, args cobra.PositionalArgs, run func(*cobra.Command, []string) error) *cobra.Command {
	help, err := helpFiles.ReadFile("help/" + name + ".txt")
	if err != nil {
		panic(err) // the command has no such file
	}
	usage, rest, _ := strings.Cut(string(help), "\n")
	short, long, _ := strings.Cut(rest, "\n")
	return &cobra.Command{Use: usage, Short: short, Long: strings.Trim(long, "\n"), Args: args, RunE: run}
}

// showHelp is what a command does that only has other commands.
func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// commandGroup returns a command that only has other commands.
func commandGroup(name string, commands ...*cobra.Command) *cobra.Command {
	cmd := newCommand(name, knownCommand, showHelp)
	cmd.AddCommand(commands...)
	return cmd
}

// knownCommand reports a command that does not exist, with the similar ones.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q", args[0])
	cmd.SuggestionsMinimumDistance = 2
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		text += "; did you mean " + strings.Join(similar, " or ") + "?"
	}
	return usageError{errors.New(text)}
}

// shownValue returns the value of a setting without secrets.
func shownValue(s *config.Setting) string {
	if s.Name == storeFlag {
		return schema.ShowAddress(s.Value.String())
	}
	return s.Value.String()
}

// noArgs and oneArg check positional arguments and report them as usage errors.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s takes no arguments, got %q", cmd.CommandPath(), args)}
	}
	return nil
}

func oneArg(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{fmt.Errorf("%s takes one argument, got %q; usage: %s", cmd.CommandPath(), args,
			cmd.UseLine())}
	}
	return nil
}

// completeFlag sets the values of a flag that a shell suggests.
func completeFlag(cmd *cobra.Command, flag string, values ...string) {
	suggest := cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc(flag, suggest); err != nil {
		panic(err) // the command has no such flag
	}
}

// printTable prints rows of cells in aligned columns. Control characters in a cell become spaces.
func (p *program) printTable(rows [][]any) error {
	table := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = strings.Join(strings.FieldsFunc(render.PrintableText(fmt.Sprint(cell)), unicode.IsControl), " ")
		}
		_, _ = fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	return table.Flush()
}

// printList prints a table, or a sentence instead of a table without rows.
func (p *program) printList(rows [][]any, none string, values ...any) error {
	if len(rows) == 1 { // the header
		p.printLine(none, values...)
		return nil
	}
	return p.printTable(rows)
}

// onlyOne returns an error if several of the flags are set.
func onlyOne(cmd *cobra.Command, names ...string) error {
	var given []string
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			given = append(given, "--"+name)
		}
	}
	if len(given) < 2 {
		return nil
	}
	return usageError{fmt.Errorf("%s: %s: must be only one of them", cmd.Name(), strings.Join(given, " and "))}
}

// absolutePath returns a path of the command line as an absolute path.
func (p *program) absolutePath(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(p.dir, path)
}

// inputPath is like absolutePath, for a file to read, which may be standard input.
func (p *program) inputPath(path string) string {
	if path == ingest.StandardInput {
		return path
	}
	return p.absolutePath(path)
}

// createOutput creates the file that a flag names. It overwrites no file, which may be an input.
func (p *program) createOutput(flag, path string) (*os.File, error) {
	const isNew = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	file, err := os.OpenFile(p.absolutePath(path), isNew, 0o666) //nolint:gosec // as os.Create
	if err != nil {
		return nil, usageError{fmt.Errorf("%s: must be a new file: %w", flag, err)}
	}
	return file, nil
}

// openInput opens a file to read, which may be standard input.
func (p *program) openInput(path string) (*os.File, error) {
	if path == ingest.StandardInput {
		return p.stdin, nil
	}
	return os.Open(p.absolutePath(path))
}
