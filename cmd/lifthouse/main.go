// Command lifthouse is the results engine: it serves the API and does
// everything else that an operator does with a store.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"lifthouse/engine/embedded"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second one kills
	dir, err := os.Getwd()
	if err != nil {
		dir = "."
	}
	p := &program{in: os.Stdin, out: os.Stdout, err: os.Stderr, dir: dir, args: os.Args[1:], getenv: os.Getenv, environ: os.Environ()}
	code := p.run(ctx)
	stop()
	if err := embedded.Shutdown(); err != nil {
		p.complain("%v", err)
		code = max(code, exitFailed)
	}
	os.Exit(code)
}
