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

// client sends requests to one server. It is safe for concurrent use.
type client struct {
	url         string // without a trailing slash
	token       string
	ingestToken string
	http        *http.Client
	etags       sync.Map // last ETag by path
}

func newClient(o *Options) *client {
	transport := &http.Transport{
		MaxIdleConnsPerHost: o.MaxInFlight, // new connections would add to the latencies
		IdleConnTimeout:     time.Minute,
		DisableCompression:  true, // sendRequest sets Accept-Encoding itself and does not decompress responses
	}
	return &client{
		url: strings.TrimRight(o.URL, "/"), token: o.Token, ingestToken: o.IngestToken,
		http: &http.Client{Transport: transport, Timeout: o.Timeout},
	}
}

// task is a request to send.
type task struct {
	kind        Kind
	path        string // with query
	events      []byte // body of a POST; nil: a GET
	conditional bool   // send If-None-Match with the last ETag
	noCache     bool   // send Cache-Control: no-cache
}

// outcome is the result of a task: a status or a transport error.
type outcome struct {
	status int
	err    string // short name of a transport error
}

func (o outcome) isSuccess() bool {
	return o.status >= 200 && o.status < 300 || o.status == http.StatusNotModified
}

// statusName is the key by which outcomes are counted.
func (o outcome) statusName() string {
	if o.err != "" {
		return o.err
	}
	return strconv.Itoa(o.status)
}

// sendRequest sends a request and reads the whole response.
func (c *client) sendRequest(ctx context.Context, t *task) outcome {
	method := http.MethodGet
	body := io.Reader(http.NoBody)
	token := c.token
	if t.events != nil {
		method = http.MethodPost
		body = bytes.NewReader(t.events)
		token = c.ingestToken
	}
	request, err := http.NewRequestWithContext(ctx, method, c.url+t.path, body)
	if err != nil {
		return outcome{err: err.Error()}
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Accept-Encoding", "gzip")
	if t.events != nil {
		request.Header.Set("Content-Type", "application/x-ndjson")
	}
	if t.noCache {
		request.Header.Set("Cache-Control", "no-cache")
	}
	if etag, known := c.etags.Load(t.path); t.conditional && known {
		request.Header.Set("If-None-Match", etag.(string))
	}
	response, err := c.http.Do(request)
	if err != nil {
		return outcome{err: errorName(err)}
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return outcome{err: errorName(err)}
	}
	if etag := response.Header.Get("ETag"); t.conditional && etag != "" {
		c.etags.Store(t.path, etag)
	}
	return outcome{status: response.StatusCode}
}

// errorName returns a short name of a transport error, so that equal errors are
// counted together.
func errorName(err error) string {
	var timeout net.Error
	var op *net.OpError
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.As(err, &op):
		return op.Op + " failed"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection closed"
	}
	return "transport error"
}

// fetchJSON requests a path and decodes the JSON response.
func (c *client) fetchJSON(ctx context.Context, path string, into any) error {
	body, err := c.fetchBody(ctx, c.url+path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("GET %s: %w", path, err)
	}
	return nil
}

// fetchBody requests an address and returns the body of the response.
func (c *client) fetchBody(ctx context.Context, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %.1000s", address, response.Status, bytes.TrimSpace(body))
	}
	return body, err
}
