package api

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"lifthouse/schema/catalogue"
)

// record holds what logs and metrics show about a request. It omits the path and the
// query string, because they may contain secrets of the client.
type record struct {
	route     string // template
	requestID string
	token     catalogue.Token // zero before authentication
}

type recordKey struct{}

// recordOf returns the record of a running request. Handlers set its fields.
func recordOf(ctx context.Context) *record {
	if r, ok := ctx.Value(recordKey{}).(*record); ok {
		return r
	}
	return &record{}
}

// noRoute is the route of unknown paths.
const noRoute = "none"

// accessLog logs and counts the responses of a handler as they are sent.
func (s *server) accessLog(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		started := time.Now()
		request, span := startRequestSpan(request)
		r := &record{route: noRoute}
		sent := &sentWriter{ResponseWriter: w}
		s.metrics.inFlight.Inc()
		defer func() {
			s.metrics.inFlight.Dec()
			s.logRequest(request, r, sent, time.Since(started))
			endTrace(span, request, r, sent.status)
		}()
		handler.ServeHTTP(sent, request.WithContext(context.WithValue(request.Context(), recordKey{}, r)))
	})
}

func (s *server) logRequest(request *http.Request, r *record, sent *sentWriter, elapsed time.Duration) {
	status := sent.status
	if status == 0 {
		status = http.StatusOK
	}
	if status == statusClientClosed && s.draining.Load() {
		status = http.StatusServiceUnavailable // the server is stopping
	}
	s.metrics.requests.WithLabelValues(knownMethod(request.Method), r.route, strconv.Itoa(status)).Observe(elapsed.Seconds())
	slog.LogAttrs(request.Context(), slog.LevelInfo, "request",
		slog.String("method", knownMethod(request.Method)), slog.String("route", r.route), slog.Int("status", status),
		slog.Float64("milliseconds", float64(elapsed.Microseconds())/1000), slog.Int64("bytes", sent.bytes),
		slog.String("requestId", r.requestID), slog.Int64("account", r.token.AccountID), slog.Int64("token", r.token.ID))
}

// knownMethod returns the method if it is standard, so clients cannot create metric
// labels.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

// sentWriter counts the bytes of a response.
type sentWriter struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// WriteHeader records the status.
func (w *sentWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write counts the bytes.
func (w *sentWriter) Write(body []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(body)
	w.bytes += int64(n)
	return n, err
}

// Unwrap supports http.ResponseController.
func (w *sentWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
