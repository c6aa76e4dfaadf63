package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// client asks one server, like many pages and scripts at once.
type client struct {
	url         string // without a slash at its end
	token       string
	ingestToken string
	http        *http.Client
	tags        sync.Map // the last ETag of each path that is polled
}

// mostOfAnswer is more than any answer has that we read to understand it.
const mostOfAnswer = 64 << 20

func newClient(o *Options) *client {
	transport := &http.Transport{
		MaxIdleConnsPerHost: o.MostUnderWay, // a connection that is closed and opened again would be measured
		IdleConnTimeout:     time.Minute,
		DisableCompression:  true, // answers come compressed, as to browsers, and are not unpacked
	}
	return &client{
		url: strings.TrimRight(o.URL, "/"), token: o.Token, ingestToken: o.IngestToken,
		http: &http.Client{Transport: transport, Timeout: o.Timeout},
	}
}

// task is one request to be sent.
type task struct {
	kind        Kind
	path        string // with its query
	events      []byte // to be posted; nil: a GET
	conditional bool   // names the ETag that it has
	fresh       bool   // wants to be computed anew
}

// answered is what became of a task: a status, or why there was none.
type answered struct {
	status int
	fault  string
}

func (a answered) ok() bool {
	return a.status >= 200 && a.status < 300 || a.status == http.StatusNotModified
}

// name is what failures are counted by.
func (a answered) name() string {
	if a.fault != "" {
		return a.fault
	}
	return strconv.Itoa(a.status)
}

// send sends the task and reads the answer to its end.
func (c *client) send(ctx context.Context, t *task) answered {
	method, body, token := http.MethodGet, io.Reader(http.NoBody), c.token
	if t.events != nil {
		method, body, token = http.MethodPost, bytes.NewReader(t.events), c.ingestToken
	}
	request, err := http.NewRequestWithContext(ctx, method, c.url+t.path, body)
	if err != nil {
		return answered{fault: err.Error()}
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Accept-Encoding", "gzip")
	if t.events != nil {
		request.Header.Set("Content-Type", "application/x-ndjson")
	}
	if t.fresh {
		request.Header.Set("Cache-Control", "no-cache")
	}
	if tag, known := c.tags.Load(t.path); t.conditional && known {
		request.Header.Set("If-None-Match", tag.(string))
	}
	response, err := c.http.Do(request)
	if err != nil {
		return answered{fault: faultOf(err)}
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return answered{fault: faultOf(err)}
	}
	if tag := response.Header.Get("ETag"); t.conditional && tag != "" {
		c.tags.Store(t.path, tag)
	}
	return answered{status: response.StatusCode}
}

// faultOf names an error of the transport in few words, so that a thousand of
// them are one line.
func faultOf(err error) string {
	var timeout net.Error
	var op *net.OpError
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.As(err, &op):
		return op.Op + " failed"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "cut off"
	}
	return "transport"
}

// read asks for a path and decodes the answer.
func (c *client) read(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+path, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, mostOfAnswer))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s: %s", path, response.Status, bytes.TrimSpace(body))
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("GET %s: %w", path, err)
	}
	return nil
}
