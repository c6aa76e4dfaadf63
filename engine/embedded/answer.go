package embedded

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// killGrace is the maximum time that a caller whose context has ended waits for
// its statement to stop. Most statements stop within milliseconds, and the
// caller then finds the engine free. After killGrace the caller returns, and
// the statement is still killed in the background. Its connection remains in
// use until then.
const killGrace = time.Second

var errAbandoned = errors.New("embedded: the answer was closed")

// answer is the result of a statement as the body of a response. The statement
// runs one chunk ahead of the reader.
type answer struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	chunks chan *result
	ended  chan struct{}
	err    error // the statement's error; set before ended is closed

	mu     sync.Mutex
	chunk  *result // the chunk being read; rest is its unread part
	rest   []byte
	final  error
	closed bool
}

// emitChunk passes a chunk to the reader. It is called by the statement's goroutine.
func (a *answer) emitChunk(r *result) error {
	select {
	case a.chunks <- r:
		return nil
	case <-a.ctx.Done():
		r.free()
		return context.Cause(a.ctx)
	}
}

// nextChunk waits for a chunk or for the end of the statement.
func (a *answer) nextChunk() (*result, error) {
	select {
	case r := <-a.chunks:
		return r, nil
	case <-a.ended:
		return nil, a.finalError()
	case <-a.ctx.Done():
	}
	select {
	case <-a.ended:
		return nil, a.finalError()
	case <-time.After(killGrace):
		return nil, context.Cause(a.ctx)
	}
}

func (a *answer) finalError() error {
	if a.err == nil {
		return io.EOF
	}
	return a.err
}

// awaitFirstChunk waits for the first bytes of the answer. It returns io.EOF if the
// statement ended without a result.
func (a *answer) awaitFirstChunk() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.loadChunk()
	if err != nil {
		a.cancel(errAbandoned)
	}
	return err
}

func (a *answer) loadChunk() error {
	r, err := a.nextChunk()
	if err != nil {
		a.final = err
		return err
	}
	a.chunk, a.rest = r, r.bytes()
	return nil
}

// Read reads the result. If the statement failed, it returns an error other than io.EOF. A
// partial result is thus never mistaken for a complete one.
func (a *answer) Read(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return 0, errAbandoned
	}
	for len(a.rest) == 0 {
		a.releaseChunk()
		if a.final != nil {
			return 0, a.final
		}
		if err := a.loadChunk(); err != nil {
			return 0, err
		}
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

func (a *answer) releaseChunk() {
	if a.chunk != nil {
		a.chunk.free()
		a.chunk, a.rest = nil, nil
	}
}

// Close stops the statement if it is still running.
func (a *answer) Close() error {
	a.cancel(errAbandoned) // before the lock, to make a waiting Read return
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	a.releaseChunk()
	select {
	case <-a.ended:
	case <-time.After(killGrace):
	}
	return nil
}
