// Command lifthouse is the results engine: it serves the API and does
// everything else that an operator does with a store.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"lifthouse/engine/embedded"
)

// stopMargin is for what a server does in the background, and to close the
// store: with the end of the process 5 s.
const stopMargin = 4500 * time.Millisecond

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second one kills
	dir, err := os.Getwd()
	if err != nil {
		dir = "."
	}
	p := &program{in: os.Stdin, out: os.Stdout, err: os.Stderr, dir: dir, args: os.Args[1:], getenv: os.Getenv, environ: os.Environ()}
	p.overdue, p.stopMargin = make(chan struct{}), stopMargin
	ended := make(chan int, 1)
	go func() { ended <- p.finish(ctx) }()
	select {
	case code := <-ended:
		stop()
		os.Exit(code)
	case <-p.overdue:
		p.complain("something in the store does not stop; it is cut off, and the next start checks what it left")
		os.Exit(exitOK)
	}
}

// finish carries out the command and joins the library's threads.
func (p *program) finish(ctx context.Context) int {
	code := p.run(ctx)
	if err := embedded.Shutdown(); err != nil {
		p.complain("%v", err)
		code = max(code, exitFailed)
	}
	return code
}
