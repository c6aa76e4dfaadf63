// Command loadgen makes events of visitors whose behaviour is known, and load,
// so that anyone can see on their own machine whether Lifthouse's answers are
// right and how fast they come.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"lifthouse/engine/embedded"

	"github.com/spf13/cobra"
)

// Exit codes: what a script can tell apart.
const (
	exitOK     = 0
	exitFailed = 1 // also: a measurement is outside its bounds
	exitUsage  = 2
)

// program is one invocation.
type program struct {
	in       io.Reader
	out, err io.Writer
}

// usageError is a command line that cannot be carried out as it stands.
type usageError struct{ error }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second one kills
	p := &program{in: os.Stdin, out: os.Stdout, err: os.Stderr}
	code := p.run(ctx, os.Args[1:])
	stop()
	if err := embedded.Shutdown(); err != nil {
		p.complain("%v", err)
		code = max(code, exitFailed)
	}
	os.Exit(code)
}

func (p *program) run(ctx context.Context, args []string) int {
	root := p.command()
	root.SetArgs(args)
	root.SetIn(p.in)
	root.SetOut(p.out)
	root.SetErr(p.err)
	err := root.ExecuteContext(ctx)
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		p.complain("%v\nRun 'loadgen --help' for the commands and their flags.", err)
		return exitUsage
	case ctx.Err() != nil:
		p.complain("interrupted")
		return exitFailed
	}
	p.complain("%v", err)
	return exitFailed
}

func (p *program) complain(format string, args ...any) {
	_, _ = fmt.Fprintf(p.err, "loadgen: "+format+"\n", args...)
}

const longHelp = `Loadgen makes visitors whose behaviour is known, and load, for a Lifthouse store or server.

Exit status: 0 done, 1 failed or outside its bounds, 2 the command line is wrong.`

func (p *program) command() *cobra.Command {
	root := &cobra.Command{
		Use:           "loadgen",
		Short:         "Events with a known truth, and load",
		Long:          longHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(p.generateCommand(), p.standardCommand(), p.peersCommand(), p.growthCommand(), p.benchCommand(), p.calibrateCommand(), p.reportCommand())
	return root
}

// noArgs refuses arguments of a command that has only flags.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s: unexpected %q", cmd.CommandPath(), args[0])}
	}
	return nil
}
