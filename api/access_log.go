package api

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"lifthouse/schema/catalogue"
)

// record is what the log and the metrics say of a request. It holds no path
// and no query: those are the client's, and may hold a secret.
type record struct {
	route     string // template
	requestID string
	token     catalogue.Token // zero before it is known
}

type recordKey struct{}

// recordOf returns the record of a request under way, which its handlers fill.
func recordOf(ctx context.Context) *record {
	if r, ok := ctx.Value(recordKey{}).(*record); ok {
		return r
	}
	return &record{}
}

// noRoute stands for all paths that are none.
const noRoute = "none"

// observed logs and counts what the handler answers, as it leaves the server.
func (s *server) accessLog(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		started := time.Now()
		request, span := traced(request)
		r := &record{route: noRoute}
		sent := &sentWriter{ResponseWriter: w}
		s.metrics.inFlight.Inc()
		defer func() {
			s.metrics.inFlight.Dec()
			s.record(request, r, sent, time.Since(started))
			endTrace(span, request, r, sent.status)
		}()
		handler.ServeHTTP(sent, request.WithContext(context.WithValue(request.Context(), recordKey{}, r)))
	})
}

func (s *server) record(request *http.Request, r *record, sent *sentWriter, elapsed time.Duration) {
	status := sent.status
	if status == 0 {
		status = http.StatusOK
	}
	if status == statusClientClosed && s.draining.Load() {
		status = http.StatusServiceUnavailable // it was us who went away
	}
	s.metrics.requests.WithLabelValues(knownMethod(request.Method), r.route, strconv.Itoa(status)).Observe(elapsed.Seconds())
	slog.LogAttrs(request.Context(), slog.LevelInfo, "request",
		slog.String("method", knownMethod(request.Method)), slog.String("route", r.route), slog.Int("status", status),
		slog.Float64("milliseconds", float64(elapsed.Microseconds())/1000), slog.Int64("bytes", sent.bytes),
		slog.String("requestId", r.requestID), slog.Int64("account", r.token.AccountID), slog.Int64("token", r.token.ID))
}

// knownMethod keeps what a client makes up out of labels.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

// sentWriter counts what is sent.
type sentWriter struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// WriteHeader notes the status.
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

// Unwrap is for http.ResponseController.
func (w *sentWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
