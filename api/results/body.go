package results

import (
	"bytes"
	"context"

	"go.opentelemetry.io/otel"

	"lifthouse/engine/render"
)

// Content types of results.
const (
	JSON = "application/json"
	SQL  = "application/sql"
	CSV  = "text/csv"
	SVG  = "image/svg+xml"
)

// Kinds are all content types of results, the default first.
var Kinds = []string{JSON, SQL, CSV, SVG}

var tracer = otel.Tracer("lifthouse/api")

// report computes the body of a report.
func (s *Service) report(ctx context.Context, q *Query) ([]byte, error) {
	if q.Kind == SQL {
		text, err := s.engine.SQL(ctx, q.Plan)
		return []byte(text), err
	}
	report, err := s.engine.Report(ctx, q.Plan)
	if err != nil {
		return nil, err
	}
	_, span := tracer.Start(ctx, "encode")
	defer span.End()
	switch q.Kind {
	case CSV:
		return render.CSV(report)
	case SVG:
		return render.ForestPlot(report)
	}
	return render.JSON(report)
}

// markStale sets the field stale in a body. In JSON the first such field is that
// of the report, since quotes in texts before it are escaped.
func markStale(kind string, body []byte) []byte {
	switch kind {
	case SQL:
		return append([]byte("-- stale: the store does not answer\n"), body...)
	case CSV, SVG:
		return body // the Warning header reports it
	}
	return bytes.Replace(body, []byte(`"stale":false`), []byte(`"stale":true`), 1)
}
