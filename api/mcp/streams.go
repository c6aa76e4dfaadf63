package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// ServeStreams answers messages, one per line, until the input or the context ends. It closes both streams. The end of
// the input reaches the SDK when all requests are answered, because the SDK cancels those in progress.
func (s *Server) ServeStreams(ctx context.Context, c Caller, requests io.ReadCloser, out io.WriteCloser) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	u := &unanswered{ids: map[string]bool{}, answered: make(chan struct{}, 1)}
	return s.sdk.Run(withCall(ctx, c), &sdk.IOTransport{
		Reader:        &input{ReadCloser: requests, lines: lines{each: u.addRequest}, end: func() { u.awaitAnswers(ctx) }},
		Writer:        &output{WriteCloser: out, lines: lines{each: u.removeAnswered}},
		MaxLineLength: MaxMessage,
	})
}

// input is the input of a server. It completes the last line, and calls end before it ends.
type input struct {
	io.ReadCloser
	lines
	end func()
}

func (i *input) Read(text []byte) (int, error) {
	n, err := i.ReadCloser.Read(text)
	if err != nil && n == 0 && len(i.line) > 0 && len(text) > 0 {
		n, err = copy(text, "\n"), nil
	}
	i.addText(text[:n])
	if err != nil && n == 0 {
		i.end()
	}
	return n, err
}

type output struct {
	io.WriteCloser
	lines
}

func (o *output) Write(text []byte) (int, error) {
	n, err := o.WriteCloser.Write(text)
	o.addText(text) // if nobody reads the output, nobody waits for the answers
	return n, err
}

// lines calls each for each complete line of a text.
type lines struct {
	line []byte
	each func(line []byte)
}

func (l *lines) addText(text []byte) {
	for part := range bytes.Lines(text) {
		if l.line = append(l.line, part...); len(l.line) > MaxMessage {
			l.line = nil // the SDK refuses it
		}
		if bytes.HasSuffix(part, []byte("\n")) {
			l.each(l.line)
			l.line = l.line[:0]
		}
	}
}

// message is what requests, answers and cancellations have.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		RequestID json.RawMessage `json:"requestId"`
	} `json:"params"`
}

// unanswered has the ids of the requests without an answer.
type unanswered struct {
	mu       sync.Mutex
	ids      map[string]bool
	answered chan struct{} // signals that a request was removed
}

func (u *unanswered) addRequest(line []byte) {
	var m message
	if json.Unmarshal(line, &m) != nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case m.Method == "notifications/cancelled":
		delete(u.ids, string(m.Params.RequestID))
	case m.Method != "" && m.ID != nil:
		u.ids[string(m.ID)] = true
	}
}

func (u *unanswered) removeAnswered(line []byte) {
	var m message
	if json.Unmarshal(line, &m) != nil || m.Method != "" {
		return
	}
	u.mu.Lock()
	delete(u.ids, string(m.ID))
	u.mu.Unlock()
	select {
	case u.answered <- struct{}{}:
	default: // the last signal is not seen yet
	}
}

// awaitAnswers waits until all requests are answered. Each call of a tool has a time limit.
func (u *unanswered) awaitAnswers(ctx context.Context) {
	for {
		u.mu.Lock()
		left := len(u.ids)
		u.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-u.answered:
		case <-ctx.Done():
			return
		}
	}
}
