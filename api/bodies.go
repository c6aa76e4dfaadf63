package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/semaphore"

	"lifthouse/engine"
)

// Bounds of what bodies of events take in memory, all of them together.
const (
	// smallBody is how many bytes of a body may be read before it counts as
	// large. Most senders never get there.
	smallBody = 1 << 20
	// smallBodies is how many bytes small bodies may have together.
	smallBodies = 64 << 20
	// largeBodies is how many large bodies may be there at once: each may become
	// as large as Options.MaxEvents.
	largeBodies = 2
	// chunkLines is how many lines are events at once, of one body.
	chunkLines = 20_000
	// chunks is how many such parts of bodies are there at once.
	chunks = 4
)

// bodies bounds what bodies of events take. A kilobyte of gzip may be a
// megabyte of events, and a megabyte of events some ten in memory.
type bodies struct {
	small *semaphore.Weighted // bytes
	large *semaphore.Weighted // bodies
	lines *semaphore.Weighted // that are events
	wait  time.Duration       // the longest that a large body waits for others to end
}

func newBodies(wait time.Duration) *bodies {
	return &bodies{semaphore.NewWeighted(smallBodies), semaphore.NewWeighted(largeBodies), semaphore.NewWeighted(chunks * chunkLines), wait}
}

// body is one that is being read and written; release gives its room back.
type body struct {
	of      *bodies
	text    []byte
	small   int64 // bytes held
	isLarge bool
	lines   int64 // held
}

func (b *body) release() {
	b.of.small.Release(b.small)
	if b.isLarge {
		b.of.large.Release(1)
	}
	b.of.lines.Release(b.lines)
	*b = body{of: b.of}
}

// grow makes room for a text of the size, or refuses it. A body that turns out
// to be large waits a while for another one to end, with what was read of it.
func (b *body) grow(ctx context.Context, size int64) error {
	switch {
	case b.isLarge || size <= b.small:
		return nil
	case size > smallBody:
		waiting, cancel := context.WithTimeout(ctx, b.of.wait)
		defer cancel()
		if b.of.large.Acquire(waiting, 1) != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return bodiesBusy()
		}
		b.isLarge = true
		b.of.small.Release(b.small)
		b.small = 0
		return nil
	case !b.of.small.TryAcquire(size - b.small):
		return bodiesBusy()
	}
	b.small = size
	return nil
}

// holdLines makes room for so many lines at once, of which release gives up
// those that were held before.
func (b *body) holdLines(lines int64) error {
	if !b.of.lines.TryAcquire(lines) {
		return bodiesBusy()
	}
	b.lines += lines
	return nil
}

// bodiesBusy is the answer to a body for which there is no room.
func bodiesBusy() error {
	return &problemError{&problem{
		Status: http.StatusServiceUnavailable, Code: string(engine.Busy), retryAfter: retryAfter,
		Detail: "too many large bodies of events are being taken: send the same again in a moment, or fewer events at once",
	}}
}

// firstRead is how much of a compressed body, or one of unknown length, is
// decoded before more room is asked for; it doubles from then on.
const firstRead = 64 << 10

// readBody reads a body of events, decompressed, and makes room for it first.
// It ends where the client goes. After an error too it is released by the
// caller, who may look at what was read.
func (s *server) readBody(request *http.Request, b *body) error {
	plain, closePlain, err := decoded(request)
	if err != nil {
		return err
	}
	defer closePlain()
	most := s.options.MaxEvents
	room := int64(firstRead)
	if known := request.ContentLength; known >= 0 && plain == io.Reader(request.Body) {
		room = known + 1 // one more, to see the end
	}
	for {
		if most > 0 {
			room = min(room, most+1)
		}
		if err := b.grow(request.Context(), room); err != nil {
			return err
		}
		if b.isLarge && most > 0 {
			room = most + 1 // at once: what is copied as it grows is there twice
		}
		switch err := b.fill(request.Context(), plain, room); {
		case err != nil && !errors.Is(err, io.EOF):
			return bodyProblem(err)
		case most > 0 && int64(len(b.text)) > most:
			return tooLong(most)
		case err != nil:
			return nil
		}
		room *= 2
	}
}

// fill reads until the text has so many bytes. The error is io.EOF at the end.
func (b *body) fill(ctx context.Context, from io.Reader, size int64) error {
	if int64(cap(b.text)) < size {
		text := make([]byte, len(b.text), size)
		copy(text, b.text)
		b.text = text
	}
	for int64(len(b.text)) < size {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := from.Read(b.text[len(b.text):min(size, int64(len(b.text)+firstRead))])
		b.text = b.text[:len(b.text)+n]
		if err != nil {
			return err
		}
	}
	return nil
}

// zstdMemory bounds the window that a body's frame may ask for.
const zstdMemory = 32 << 20

// decoded returns the body's bytes as they were before they were compressed.
func decoded(request *http.Request) (plain io.Reader, closePlain func(), err error) {
	nothing := func() {}
	switch encoding := strings.ToLower(strings.TrimSpace(request.Header.Get("Content-Encoding"))); encoding {
	case "", "identity":
		return request.Body, nothing, nil
	case "gzip":
		unzipped, err := gzip.NewReader(request.Body)
		if err != nil {
			return nil, nil, bodyProblem(err)
		}
		return unzipped, nothing, nil
	case "zstd":
		decoder, err := zstd.NewReader(request.Body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdMemory))
		if err != nil {
			return nil, nil, bodyProblem(err)
		}
		return decoder, decoder.Close, nil
	default:
		return nil, nil, &problemError{&problem{Status: http.StatusUnsupportedMediaType, Code: "unsupported_encoding", Detail: fmt.Sprintf("Content-Encoding %q: want gzip, zstd or none", encoding)}}
	}
}

func tooLong(most int64) error {
	return &problemError{&problem{Status: http.StatusRequestEntityTooLarge, Code: "body_too_large", Detail: fmt.Sprintf("the body: want at most %d bytes; send fewer events at once", most)}}
}

// bodyProblem refuses a body that cannot be read to its end.
func bodyProblem(err error) error {
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return tooLong(long.Limit)
	case errors.Is(err, context.Canceled):
		return err
	}
	return &problemError{&problem{
		Status: http.StatusBadRequest, Code: "invalid_body", Detail: "the body cannot be read; nothing of it was stored",
		Errors: []fault{{"body", "", "", err.Error()}},
	}}
}
