// Command loadgen generates events with known effects, load-tests servers, and
// measures the accuracy and the cost of Lifthouse's reports.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"lifthouse/cmd/internal/bounds"
	"lifthouse/engine/embedded"

	"github.com/spf13/cobra"
)

// Exit statuses.
const (
	exitOK     = 0
	exitFailed = 1 // the command failed, or a measurement is outside its limits
	exitUsage  = 2 // the command line is invalid
)

// program is one invocation of loadgen.
type program struct {
	out, err io.Writer
}

// usageError is an error in the command line.
type usageError struct{ error }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal terminates the process
	p := &program{out: os.Stdout, err: os.Stderr}
	code := p.runCommand(ctx, os.Args[1:])
	stop()
	if err := embedded.Shutdown(); err != nil {
		p.printDiagnostic("%v", err)
		code = max(code, exitFailed)
	}
	os.Exit(code)
}

func (p *program) runCommand(ctx context.Context, args []string) int {
	root := p.rootCommand()
	root.SetArgs(args)
	root.SetOut(p.out)
	root.SetErr(p.err)
	err := root.ExecuteContext(ctx)
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		p.printDiagnostic("%v\nRun 'loadgen --help' for a list of commands.", err)
		return exitUsage
	case ctx.Err() != nil:
		p.printDiagnostic("interrupted")
		return exitFailed
	}
	p.printDiagnostic("%v", err)
	return exitFailed
}

// printDiagnostic writes a line to standard error.
func (p *program) printDiagnostic(format string, args ...any) {
	_, _ = fmt.Fprintf(p.err, "loadgen: "+format+"\n", args...)
}

const longHelp = `Loadgen generates events with known effects for a Lifthouse store or server, load-tests servers, and
measures the accuracy and the cost of reports.

Exit status: 0 success, 1 failure or a measurement outside its limits, 2 invalid command line.`

func (p *program) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "loadgen",
		Short:         "Generate events with known effects, load-test servers and measure reports",
		Long:          longHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q", args[0])}
			}
			return nil
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if faults := bounds.FlagFaults(cmd.Flags()); len(faults) > 0 {
				return usageError{errors.New(strings.Join(faults, "\n"))}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{bounds.ExplainParseError(err)} })
	root.AddCommand(p.generateCommand(), p.standardCommand(), p.competitorsCommand(), p.growthCommand(), p.foldsCommand(), p.capacityCommand(), p.benchCommand(), p.calibrateCommand(), p.reportCommand())
	return root
}

// noArgs returns an error if a command has arguments.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s: unexpected argument %q", cmd.CommandPath(), args[0])}
	}
	return nil
}
