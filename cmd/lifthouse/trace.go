package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
)

// tracesMayTake is for what is left of spans when the server stops.
const tracesTimeout = 5 * time.Second

// trace has spans sent by OTLP over HTTP where the environment names a
// collector, by OpenTelemetry's own variables, which the exporter reads itself.
// Without one nothing is traced. end sends what is left.
func (p *program) trace(ctx context.Context) (end func(), err error) {
	if p.getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && p.getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
		return func() {}, nil
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: %w", err)
	}
	about, err := resource.New(ctx, resource.WithFromEnv(), resource.WithTelemetrySDK(),
		resource.WithAttributes(semconv.ServiceName("lifthouse"), semconv.ServiceVersion(version())), resource.WithFromEnv())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err), exporter.Shutdown(ctx))
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about))
	otel.SetTracerProvider(provider)
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tracesTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			p.complain("traces: what was left was not sent: %v", err)
		}
	}, nil
}
