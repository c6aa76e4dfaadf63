package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"lifthouse/engine/source"
	"lifthouse/schema/faults"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/semaphore"
)

// Limits of the memory for all request bodies with events together.
const (
	// smallBody is the size in bytes above which a body is large. Most bodies
	// are small.
	smallBody = 1 << 20
	// smallBodies is the total size of all small bodies in bytes.
	smallBodies = 64 << 20
	// largeBodies is the number of concurrent large bodies. Each can have
	// Options.MaxEvents bytes.
	largeBodies = 2
	// chunkLines is the number of body lines that are parsed into events at once.
	chunkLines = 20_000
	// chunks is the maximum number of such parts in memory at the same time.
	chunks = 4
)

// bodies limits the memory of request bodies with events and catalogues. A kilobyte of gzip
// can contain a megabyte of events, which takes about ten megabytes of memory.
type bodies struct {
	small *semaphore.Weighted // bytes
	large *semaphore.Weighted // bodies
	lines *semaphore.Weighted // lines parsed into events
	wait  time.Duration       // maximum time that a large body waits for other large ones

	parsed *semaphore.Weighted // bodies of YAML; a parsed one takes hundreds of times its size
}

func newBodies(wait time.Duration) *bodies {
	return &bodies{
		small: semaphore.NewWeighted(smallBodies), large: semaphore.NewWeighted(largeBodies), lines: semaphore.NewWeighted(chunks * chunkLines), wait: wait,
		parsed: semaphore.NewWeighted(1),
	}
}

// body is a request body that is being processed. releaseMemory returns its share of the
// limits.
type body struct {
	of      *bodies
	text    []byte
	small   int64 // acquired bytes
	isLarge bool
	lines   int64 // acquired lines
}

func (b *body) releaseMemory() {
	b.of.small.Release(b.small)
	if b.isLarge {
		b.of.large.Release(1)
	}
	b.of.lines.Release(b.lines)
	*b = body{of: b.of}
}

// acquireMemory acquires memory for a text of the given size. A body that becomes large
// waits for other large bodies, and keeps the text that was already read.
func (b *body) acquireMemory(ctx context.Context, size int64) error {
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

// holdLines acquires the given number of lines, in addition to those that the body
// already holds.
func (b *body) holdLines(lines int64) error {
	if !b.of.lines.TryAcquire(lines) {
		return bodiesBusy()
	}
	b.lines += lines
	return nil
}

// bodiesBusy returns the problem for a body that exceeds the limits.
func bodiesBusy() error {
	return &problemError{&problem{
		Status: http.StatusServiceUnavailable, Code: string(source.Busy), retryAfter: retryAfter,
		Detail: "too many large bodies at the same time: retry in a moment, or send less per request",
	}}
}

// firstRead is the size of the first buffer for a compressed body or a body of
// unknown length. The buffer doubles as needed.
const firstRead = 64 << 10

// readBody reads and decompresses a body of at most most bytes within the limits; 0: any
// size. It stops if the client disconnects. Even after an error, the caller must release the
// body, and may use the part that was read.
func (s *server) readBody(request *http.Request, b *body, most int64) error {
	plain, closePlain, err := decompressBody(request)
	if err != nil {
		return err
	}
	defer closePlain()
	room := int64(firstRead)
	if known := request.ContentLength; known >= 0 && plain == io.Reader(request.Body) {
		room = known + 1 // one more byte, to detect the end
	}
	for {
		if most > 0 {
			room = min(room, most+1)
		}
		if err := b.acquireMemory(request.Context(), room); err != nil {
			return err
		}
		if b.isLarge && most > 0 {
			room = most + 1 // grow at once to the maximum, because two copies exist while a buffer grows
		}
		switch err := b.readText(request.Context(), plain, room); {
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

// readText reads until the text has the given size. The error is io.EOF at the end.
func (b *body) readText(ctx context.Context, from io.Reader, size int64) error {
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

// zstdMemory is the maximum window size of a zstd frame.
const zstdMemory = 32 << 20

// decompressBody returns a reader of the decompressed body.
func decompressBody(request *http.Request) (plain io.Reader, closePlain func(), err error) {
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
		return nil, nil, &problemError{&problem{Status: http.StatusUnsupportedMediaType, Code: "unsupported_encoding", Detail: fmt.Sprintf("Content-Encoding %q: must be gzip, zstd or none", encoding)}}
	}
}

func tooLong(most int64) error {
	return &problemError{&problem{Status: http.StatusRequestEntityTooLarge, Code: "body_too_large", Detail: fmt.Sprintf("the body must have at most %d bytes; send less per request", most)}}
}

// bodyProblem returns the problem for a body that cannot be read to its end.
func bodyProblem(err error) error {
	var long *http.MaxBytesError
	var found faults.List
	switch {
	case errors.As(err, &long):
		return tooLong(long.Limit)
	case errors.Is(err, context.Canceled), errors.As(err, &found):
		return err
	}
	return &problemError{&problem{
		Status: http.StatusBadRequest, Code: "invalid_body", Detail: "the body cannot be read; nothing was changed",
		Errors: []fault{{"body", "", "", err.Error()}},
	}}
}
