package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"

	"lifthouse/engine"
	"lifthouse/schema/catalogue"

	"github.com/gin-gonic/gin"
)

// problem is the body of every refusal (RFC 9457).
type problem struct {
	Type      string  `json:"type"`
	Title     string  `json:"title"`
	Status    int     `json:"status"`
	Detail    string  `json:"detail,omitempty"`
	Instance  string  `json:"instance"`
	Code      string  `json:"code"`
	RequestID string  `json:"requestId"`
	Errors    []fault `json:"errors,omitempty"`
	More      int     `json:"more,omitempty"` // errors that are not listed

	retryAfter int   // seconds; 0: not said
	cause      error // for the log
}

// fault is one thing wrong with the request.
type fault struct {
	In     string `json:"in"`
	Name   string `json:"name"`
	Value  string `json:"value"`
	Detail string `json:"detail"`
}

// statusClientClosed is what the log says of a client that went away (nginx's
// number; no client sees it).
const statusClientClosed = 499

func notFound(detail string) *problem {
	return &problem{Status: http.StatusNotFound, Code: "not_found", Detail: detail}
}

// problemOf is the one place where an error becomes a status.
func problemOf(err error) *problem {
	var invalid *engine.InvalidError
	var missing *engine.NotFoundError
	var store *engine.StoreError
	var refused *problemError
	switch {
	case errors.As(err, &refused):
		return refused.problem
	case errors.As(err, &invalid):
		return invalidProblem(invalid)
	case errors.As(err, &missing):
		return notFound(missing.Error())
	case errors.As(err, &store):
		return storeProblem(store)
	case errors.Is(err, context.Canceled):
		return &problem{Status: statusClientClosed, Code: "client_closed_request", cause: err}
	}
	return &problem{Status: http.StatusInternalServerError, Code: "internal_error", Detail: "this is our fault; the log has the cause under the request id", cause: err}
}

// retryAfter is how many seconds a busy store is left alone.
const retryAfter = 2

// retryAfterFull is how many seconds a full one is left alone: somebody has to
// make room.
const retryAfterFull = 60

func storeProblem(err *engine.StoreError) *problem {
	p := &problem{Status: http.StatusServiceUnavailable, Code: string(err.Fault), Detail: err.Error(), retryAfter: retryAfter, cause: err.Unwrap()}
	switch err.Fault {
	case engine.TooSlow:
		p.Status = http.StatusGatewayTimeout
	case engine.Bug:
		p.Status, p.retryAfter, p.Code = http.StatusInternalServerError, 0, "internal_error"
	case engine.Damaged:
		p.Status, p.retryAfter = http.StatusInternalServerError, 0
	case engine.Full:
		p.retryAfter = retryAfterFull
	case engine.TooLarge, engine.Busy, engine.Down:
	}
	return p
}

func invalidProblem(invalid *engine.InvalidError) *problem {
	p := &problem{Status: http.StatusBadRequest, Code: invalid.Code, Detail: "the request cannot be understood as it stands; nothing was done"}
	for _, f := range invalid.Faults {
		in := "query"
		if f.Name == pathIDName || f.Name == experimentIDName || f.Name == attributeName {
			in = "path"
		}
		p.Errors = append(p.Errors, fault{in, f.Name, f.Value, f.Detail})
	}
	return p
}

// problemError lets a handler return a problem.
type problemError struct{ *problem }

// Error is the problem's detail.
func (p *problemError) Error() string { return p.Detail }

// refuse ends the request with a problem. A token that stands where it does
// not belong is not repeated.
func writeProblem(c *gin.Context, p *problem) {
	if p.Status == statusClientClosed && c.Request.Context().Err() == nil {
		p = problemOf(errors.New("given up, and not by the client: " + p.cause.Error()))
	}
	p.Type = "about:blank"
	p.Title = http.StatusText(p.Status)
	p.Instance = strings.ToValidUTF8(c.Request.URL.Path[:min(len(c.Request.URL.Path), maxPath)], "�")
	p.RequestID = c.GetString(requestIDKey)
	if p.Status >= http.StatusInternalServerError {
		slog.ErrorContext(c.Request.Context(), "request failed", "requestId", p.RequestID, "route", c.FullPath(), "status", p.Status,
			"code", p.Code, "error", catalogue.RedactTokens(fmt.Sprint(p.cause)))
	}
	c.Header("Cache-Control", "no-store")
	if p.retryAfter > 0 {
		c.Header("Retry-After", strconv.Itoa(p.retryAfter))
	}
	body, err := encode(p)
	if err != nil {
		body = []byte(`{"status":500,"code":"internal_error"}`)
	}
	c.Abort()
	c.Data(p.Status, "application/problem+json", []byte(catalogue.RedactTokens(string(body))))
}

// recovered turns a panic into a problem and logs its stack.
func recovered(c *gin.Context) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(cause) // net/http's own way to cut a connection off
		}
		slog.ErrorContext(c.Request.Context(), "panic", "requestId", c.GetString(requestIDKey), "route", c.FullPath(),
			"panic", catalogue.RedactTokens(fmt.Sprint(cause)), "stack", string(debug.Stack()))
		if !c.Writer.Written() {
			writeProblem(c, problemOf(errors.New("panic")))
		}
	}()
	c.Next()
}
