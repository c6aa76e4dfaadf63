package api

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"lifthouse/engine/query"
	"lifthouse/engine/render"
	"lifthouse/engine/source"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/documents"
	"lifthouse/schema/faults"

	"github.com/gin-gonic/gin"
)

// reply is a complete response body.
type reply struct {
	status int // 0: 200
	kind   string
	body   []byte
	tag    string // entity tag; empty: no conditional requests
	keep   string // Cache-Control
	stale  bool
}

// Values of Cache-Control.
const (
	// keptForever is for documents, which never change.
	keptForever = "private, max-age=31536000, immutable"
	// revalidated is for data that a start, a stop or an apply changes immediately.
	revalidated = "private, no-cache"
	// briefly is for results, whose data are refreshed every second.
	briefly = "private, max-age=1"
	// notKept is for responses that must not be cached.
	notKept = "no-store"
)

// staleWarning is the Warning of a response without all accepted events.
const staleWarning = `110 lifthouse "Response is Stale"`

// varies lists the headers that determine a response. Browsers cache by URL and may use different tokens.
const varies = "Accept, Authorization"

// sendReply sends the reply, or 304 if the client has it.
func sendReply(c *gin.Context, r reply) {
	c.Header("Cache-Control", r.keep)
	if r.tag != "" {
		c.Header("ETag", r.tag)
		if matchesTag(c.Request, r.tag) {
			sendStatus(c, http.StatusNotModified)
			return
		}
	}
	if r.stale {
		c.Header("Warning", staleWarning)
	}
	if r.status == http.StatusNoContent {
		sendStatus(c, r.status)
		return
	}
	kind := r.kind
	if kind != lineType && kind != documents.JPEG {
		kind += "; charset=utf-8"
	}
	c.Data(cmp.Or(r.status, http.StatusOK), kind, r.body)
}

// sendStatus sends a response without a body.
func sendStatus(c *gin.Context, status int) {
	c.Status(status)
	c.Writer.WriteHeaderNow()
}

// typeKey is the context key of the negotiated content type.
const typeKey = "type"

// negotiateType selects the content type of the response: the offer with the highest quality in the Accept header (RFC
// 9110, 12.5.1), which is that of the most specific range that matches it. Among equals it selects the first. Without
// the header, every offer is acceptable. Invalid ranges are ignored.
func negotiateType(c *gin.Context, offers []string) error {
	header := strings.Join(c.Request.Header.Values("Accept"), ",")
	if strings.Trim(header, " ,") == "" {
		c.Set(typeKey, offers[0])
		return nil
	}
	qualities := map[string]float64{} // of type/subtype, type/* or */*
	for part := range strings.SplitSeq(header, ",") {
		name, parameters, err := mime.ParseMediaType(part)
		quality := 1.0
		if q, given := parameters["q"]; given && err == nil {
			quality, err = strconv.ParseFloat(q, 64)
		}
		if err == nil && quality >= 0 && quality <= 1 {
			qualities[name] = max(qualities[name], quality)
		}
	}
	best, liked := "", 0.0
	for _, offer := range offers {
		family, _, _ := strings.Cut(offer, "/")
		quality := 0.0
		for _, name := range []string{"*/*", family + "/*", offer} {
			if q, matches := qualities[name]; matches {
				quality = q
			}
		}
		if quality > liked {
			best, liked = offer, quality
		}
	}
	if best == "" {
		return newRefusal(http.StatusNotAcceptable, "not_acceptable", "have "+strings.Join(offers, ", "))
	}
	c.Set(typeKey, best)
	return nil
}

// entityTag returns a weak entity tag of everything that determines a response. It is weak because generatedAt may
// differ.
func entityTag(parts ...string) string {
	digest := sha256.New()
	for _, part := range parts {
		_, _ = io.WriteString(digest, strconv.Itoa(len(part))+":"+part)
	}
	return `W/"` + base64.RawURLEncoding.EncodeToString(digest.Sum(nil)[:16]) + `"`
}

// matchesTag reports whether the client has the response with this tag (RFC 9110, 13.1.2).
func matchesTag(request *http.Request, tag string) bool {
	isRead := request.Method == http.MethodGet || request.Method == http.MethodHead
	return isRead && listsTag(request, "If-None-Match", tag)
}

// listsTag reports whether a header lists one of the tags, or all. A proxy that compresses may have made a strong tag
// weak, which does not change what it means.
func listsTag(request *http.Request, header string, tags ...string) bool {
	return slices.ContainsFunc(valuesOf(request, header), func(listed string) bool {
		return listed == "*" || slices.ContainsFunc(tags, func(tag string) bool {
			return strings.TrimPrefix(tag, "W/") == strings.TrimPrefix(listed, "W/")
		})
	})
}

// valuesOf returns the comma-separated values of a header.
func valuesOf(request *http.Request, header string) []string {
	values := strings.Split(strings.Join(request.Header.Values(header), ","), ",")
	for i := range values {
		values[i] = strings.TrimSpace(values[i])
	}
	return values
}

// problem is the body of an error response (RFC 9457).
type problem struct {
	Type      string  `json:"type"`
	Title     string  `json:"title"`
	Status    int     `json:"status"`
	Detail    string  `json:"detail,omitempty"`
	Instance  string  `json:"instance"`
	Code      string  `json:"code"`
	RequestID string  `json:"requestId"`
	Errors    []fault `json:"errors,omitempty"`
	More      int     `json:"more,omitempty"` // further errors

	retryAfter int   // seconds; 0: no header
	cause      error // for the log
}

// fault is one error of a request.
type fault struct {
	In     string `json:"in"`
	Name   string `json:"name"`
	Value  string `json:"value"`
	Detail string `json:"detail"`
}

// newRefusal returns a problem.
func newRefusal(status int, code, detail string) *problem {
	return &problem{Status: status, Code: code, Detail: detail}
}

// unavailable returns a problem that may have passed when the request is repeated.
func unavailable(code, detail string, retryAfter int, cause error) *problem {
	return &problem{
		Status: http.StatusServiceUnavailable, Code: code, Detail: detail, retryAfter: retryAfter, cause: cause,
	}
}

// Error returns the detail: a handler returns a problem as its error.
func (p *problem) Error() string { return p.Detail }

// statusClientClosed is logged if the client disconnected, as in nginx. No client receives it.
const statusClientClosed = 499

func notFound(detail string) *problem { return newRefusal(http.StatusNotFound, "not_found", detail) }

// problemOf maps an error to a problem. It is the only place that determines the status.
func problemOf(err error) *problem {
	var invalid *query.InvalidError
	var missing *query.NotFoundError
	var store *source.StoreError
	var refused *problem
	var found faults.List
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &invalid):
		p := &problem{
			Status: http.StatusBadRequest, Code: invalid.Code,
			Detail: "the request is invalid; nothing was changed",
		}
		for _, f := range invalid.Faults {
			in := "query"
			switch f.Name {
			case pathIDName, experimentIDName, attributeName, query.TableOfFile, query.FormatOfFile:
				in = "path"
			case keyHeader:
				in = "header"
			}
			p.Errors = append(p.Errors, fault{in, f.Name, f.Value, f.Detail})
		}
		return p
	case errors.As(err, &found):
		return bodyFaults(query.InvalidParameter, found)
	case errors.As(err, &missing):
		return notFound(missing.Error())
	case errors.As(err, &store):
		return storeProblem(store)
	case errors.Is(err, context.Canceled):
		return &problem{Status: statusClientClosed, Code: "client_closed_request", cause: err}
	}
	return &problem{
		Status: http.StatusInternalServerError, Code: "internal_error",
		Detail: "internal error; this is a bug; the log has the cause under the request id", cause: err,
	}
}

// retryAfter is the Retry-After, in seconds, if the store is overloaded.
const retryAfter = 2

// retryAfterFull is the Retry-After, in seconds, if the disk is full. An operator must free space.
const retryAfterFull = 60

// retryAfterRebuilt is the Retry-After, in seconds, while the facts are rebuilt, which takes minutes.
const retryAfterRebuilt = 10

func storeProblem(err *source.StoreError) *problem {
	p := &problem{
		Status: http.StatusServiceUnavailable, Code: string(err.Fault), Detail: err.Error(),
		retryAfter: retryAfter, cause: err.Unwrap(),
	}
	switch err.Fault {
	case source.TooSlow:
		p.Status = http.StatusGatewayTimeout
	case source.Bug:
		p.Status = http.StatusInternalServerError
		p.retryAfter = 0
		p.Code = "internal_error"
	case source.Damaged:
		p.Status = http.StatusInternalServerError
		p.retryAfter = 0
	case source.Full:
		p.retryAfter = retryAfterFull
	case source.Rebuilt:
		p.retryAfter = retryAfterRebuilt
	case source.TooLarge, source.Busy, source.Down:
	}
	return p
}

// failAnswer sends the problem of an error, or aborts the connection if a part of the answer is sent already.
func failAnswer(c *gin.Context, err error) {
	if c.Writer.Written() {
		_ = c.Error(err)
		panic(http.ErrAbortHandler)
	}
	writeProblem(c, problemOf(err))
}

// writeProblem sends a problem and ends the request. It masks tokens that a client put in the wrong place, such as the
// query string.
func writeProblem(c *gin.Context, p *problem) {
	if p.Status == statusClientClosed && c.Request.Context().Err() == nil {
		p = problemOf(errors.New("cancelled, but not by the client: " + p.cause.Error()))
	}
	body := encodeProblem(c, p)
	c.Header("Cache-Control", "no-store")
	if p.retryAfter > 0 {
		c.Header("Retry-After", strconv.Itoa(p.retryAfter))
	}
	c.Abort()
	c.Data(p.Status, "application/problem+json", body)
}

// encodeProblem returns the body of a problem, and logs a failure of the server.
func encodeProblem(c *gin.Context, p *problem) []byte {
	p.Type = "about:blank"
	p.Title = http.StatusText(p.Status)
	p.Instance = strings.ToValidUTF8(c.Request.URL.Path[:min(len(c.Request.URL.Path), maxPath)], "�")
	p.RequestID = recordOf(c.Request.Context()).requestID
	if p.Status >= http.StatusInternalServerError {
		slog.ErrorContext(c.Request.Context(), "request failed", "requestId", p.RequestID, "route", c.FullPath(),
			"status", p.Status, "code", p.Code, "err", catalogue.RedactTokens(fmt.Sprint(p.cause)))
	}
	body, err := render.JSON(p)
	if err != nil {
		body = []byte(`{"status":500,"code":"internal_error"}`)
	}
	return []byte(catalogue.RedactTokens(string(body)))
}

// recoverPanic converts a panic to a problem and logs its stack.
func recoverPanic(c *gin.Context) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(cause) // net/http aborts the connection
		}
		ctx := c.Request.Context()
		slog.ErrorContext(ctx, "panic", "requestId", recordOf(ctx).requestID, "route", c.FullPath(),
			"panic", catalogue.RedactTokens(fmt.Sprint(cause)), "stack", string(debug.Stack()))
		if !c.Writer.Written() {
			writeProblem(c, problemOf(errors.New("panic")))
		}
	}()
	c.Next()
}
