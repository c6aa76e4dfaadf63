package embedded

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// killGrace is how long a caller whose context has ended waits for its
// statement to stop. Most stop within milliseconds, and the caller then finds
// the engine free; after that the statement is left behind, still to be
// killed, and its connection stays taken.
const killGrace = time.Second

var errAbandoned = errors.New("embedded: the answer was closed")

// answer is the result of a statement as a response's body. The statement runs
// one chunk ahead of the reader.
type answer struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	chunks chan *result
	ended  chan struct{}
	err    error // of the statement, once ended is closed

	mu     sync.Mutex
	chunk  *result // the chunk being read, of which rest is left
	rest   []byte
	final  error
	closed bool
}

// emit gives a chunk to the reader; the statement's goroutine calls it.
func (a *answer) emit(r *result) error {
	select {
	case a.chunks <- r:
		return nil
	case <-a.ctx.Done():
		r.free()
		return context.Cause(a.ctx)
	}
}

// next waits for a chunk, or for the statement's end.
func (a *answer) next() (*result, error) {
	select {
	case r := <-a.chunks:
		return r, nil
	case <-a.ended:
		return nil, a.outcome()
	case <-a.ctx.Done():
	}
	select {
	case <-a.ended:
		return nil, a.outcome()
	case <-time.After(killGrace):
		return nil, context.Cause(a.ctx)
	}
}

func (a *answer) outcome() error {
	if a.err == nil {
		return io.EOF
	}
	return a.err
}

// start waits until the answer's first bytes are there. It returns io.EOF if
// the statement ended without a result.
func (a *answer) start() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.advance()
	if err != nil {
		a.cancel(errAbandoned)
	}
	return err
}

func (a *answer) advance() error {
	r, err := a.next()
	if err != nil {
		a.final = err
		return err
	}
	a.chunk, a.rest = r, r.bytes()
	return nil
}

// Read reads the result. It returns an error other than io.EOF if the
// statement did not end well, so that a part never passes for the whole.
func (a *answer) Read(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return 0, errAbandoned
	}
	for len(a.rest) == 0 {
		a.release()
		if a.final != nil {
			return 0, a.final
		}
		if err := a.advance(); err != nil {
			return 0, err
		}
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

func (a *answer) release() {
	if a.chunk != nil {
		a.chunk.free()
		a.chunk, a.rest = nil, nil
	}
}

// Close stops the statement if it still runs.
func (a *answer) Close() error {
	a.cancel(errAbandoned) // before the lock: a Read that waits then returns
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	a.release()
	select {
	case <-a.ended:
	case <-time.After(killGrace):
	}
	return nil
}
