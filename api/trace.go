package api

import (
	"net/http"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// tracer creates the spans of requests. Spans are dropped unless the program
// configures an exporter.
var tracer = otel.Tracer("lifthouse/api")

// startRequestSpan starts the span of a request, within the trace of the client if there
// is one (W3C Trace Context).
func startRequestSpan(request *http.Request) (*http.Request, trace.Span) {
	ctx := propagation.TraceContext{}.Extract(request.Context(), propagation.HeaderCarrier(request.Header))
	ctx, span := tracer.Start(ctx, "request", trace.WithSpanKind(trace.SpanKindServer))
	return request.WithContext(ctx), span
}

// endTrace ends the span and names it after the route template. The span contains
// neither path nor query string.
func endTrace(span trace.Span, request *http.Request, r *record, status int) {
	if status == 0 {
		status = http.StatusOK
	}
	method := knownMethod(request.Method)
	span.SetName(method + " " + r.route)
	span.SetAttributes(
		attribute.String("http.request.method", method), attribute.String("http.route", r.route),
		attribute.Int("http.response.status_code", status), attribute.String("lifthouse.request_id", r.requestID),
		attribute.Int64("lifthouse.account", r.token.AccountID))
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, http.StatusText(status))
	}
	span.End()
}
