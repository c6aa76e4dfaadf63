package source

import (
	"context"

	"github.com/ClickHouse/clickhouse-go/v2"

	"go.opentelemetry.io/otel"
	kv "go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Tracer makes the spans of a report: plan, query (one per statement) and
// stats. They are dropped unless the program configures an exporter.
var Tracer = otel.Tracer("lifthouse/engine")

// querySpan starts the span of a statement. The ids of the span are the query
// id in the logs of the store. The statement in the span has no parameter
// values.
func querySpan(ctx context.Context, q *Query) (context.Context, trace.Span) {
	ctx, span := Tracer.Start(ctx, "query", trace.WithSpanKind(trace.SpanKindClient))
	if !span.IsRecording() {
		return ctx, span
	}
	id := span.SpanContext().TraceID().String() + "-" + span.SpanContext().SpanID().String()
	span.SetAttributes(
		kv.String("db.system.name", "clickhouse"),
		kv.String("db.query.text", q.SQL),
		kv.String("db.clickhouse.query_id", id))
	return clickhouse.Context(ctx, clickhouse.WithQueryID(id)), span
}

// EndSpan ends a span and records an error.
func EndSpan(span trace.Span, err error) {
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}
