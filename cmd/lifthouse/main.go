// Command lifthouse serves the API and the dashboard, and administers a store.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
	_ "time/tzdata" // time zones of websites on systems without them

	"lifthouse/engine/embedded"
)

// stopMargin is the time to stop background tasks and to close the store. Together with the end of the process, it is 5
// s.
const stopMargin = 4500 * time.Millisecond

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills the process
	dir, err := os.Getwd()
	if err != nil {
		dir = "."
	}
	p := &program{
		stdin: os.Stdin, stdout: duplicateStdout(), stderr: os.Stderr, dir: dir, args: os.Args[1:],
		getenv: os.Getenv, environ: os.Environ(),
	}
	p.overdue, p.stopMargin = make(chan struct{}), stopMargin
	ended := make(chan int, 1)
	go func() {
		code := p.runCommand(ctx)
		if err := embedded.Shutdown(); err != nil { // waits for the threads of the engine
			p.printDiagnostic("%v", err)
			code = max(code, exitFailed)
		}
		ended <- code
	}()
	select {
	case code := <-ended:
		stop()
		os.Exit(code)
	case <-p.overdue:
		p.printDiagnostic("the store does not stop in time; the process ends now, and the next start checks the store")
		os.Exit(exitOK)
	}
}

// duplicateStdout returns standard output with another descriptor. When the reader has gone, as in lifthouse events |
// head, a write to this descriptor fails, and the command ends and closes the store. A write to descriptor 1 would kill
// the process.
func duplicateStdout() *os.File {
	descriptor, err := syscall.Dup(int(os.Stdout.Fd()))
	if err != nil {
		return os.Stdout
	}
	syscall.CloseOnExec(descriptor)
	return os.NewFile(uintptr(descriptor), os.Stdout.Name())
}
