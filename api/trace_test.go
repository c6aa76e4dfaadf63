package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"lifthouse/schema/schematest/check"
)

func TestATraceTellsWhatAReportTook(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(spans))
	otel.SetTracerProvider(provider)
	t.Cleanup(func() { _ = provider.Shutdown(t.Context()) })
	s := newServer(t)
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	s.send(http.MethodGet, "/v1/campaigns/12/results?filters%5Bcity%5D=Secretville", http.NoBody, s.withToken("Traceparent", "00-"+trace+"-00f067aa0ba902b7-01")...)
	s.Close() // its last spans have ended
	var names []string
	for _, span := range spans.GetSpans() {
		if span.SpanContext.TraceID().String() != trace {
			continue // of what a server does without being asked
		}
		names = append(names, span.Name)
		for _, attribute := range span.Attributes {
			text := attribute.Value.String()
			check.That(t, !strings.Contains(text, "Secretville") && !strings.Contains(text, s.token) && !strings.Contains(text, "campaigns/12"),
				"%s: %s reveals the request: %s", span.Name, attribute.Key, text)
			check.That(t, attribute.Key != "db.clickhouse.query_id" || strings.HasPrefix(text, trace+"-"), "the query id is %s, want it by the span's ids", text)
		}
	}
	for _, want := range []string{"GET /v1/campaigns/:id/results", "parse", "fold", "query", "stats", "encode"} {
		check.That(t, slices.Contains(names, want), "no span %q in %v", want, names)
	}
}
