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

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills the process
	dir, err := os.Getwd()
	if err != nil {
		dir = "."
	}
	// Standard output gets another descriptor. When the reader has gone, as in lifthouse events | head, a write to it
	// fails, and the command ends and closes the store. A write to descriptor 1 would kill the process.
	stdout := os.Stdout
	if descriptor, err := syscall.Dup(int(os.Stdout.Fd())); err == nil {
		syscall.CloseOnExec(descriptor)
		stdout = os.NewFile(uintptr(descriptor), os.Stdout.Name())
	}
	p := &program{
		stdin: os.Stdin, stdout: stdout, stderr: os.Stderr, dir: dir, args: os.Args[1:],
		getenv: os.Getenv, environ: os.Environ(),
	}
	// background tasks stop and the store is closed in this time; together with the end of the process, it is 5 s
	p.overdue = make(chan struct{})
	p.stopMargin = 4500 * time.Millisecond
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
