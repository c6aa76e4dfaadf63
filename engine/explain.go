package engine

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"lifthouse/engine/plan"
	"lifthouse/engine/source"
)

// SQL computes a report and returns the statements that it ran, with the plan and the parameters as
// comments. Each statement starts at a line that begins with "-- statement" and can be run as it is.
func (e *Engine) SQL(ctx context.Context, p *plan.Plan) (string, error) {
	queries, err := e.traceStatements(ctx, p)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for line := range strings.Lines(p.String()) {
		b.WriteString("-- " + line)
	}
	for i, q := range queries {
		fmt.Fprintf(&b, "-- statement %d of %d\n%s", i+1, len(queries), explainQuery(q))
	}
	return b.String(), nil
}

// traceStatements computes a report, and returns the statements that it ran.
func (e *Engine) traceStatements(ctx context.Context, p *plan.Plan) (queries []*source.Statement, err error) {
	x, err := e.prepareReport(ctx, p)
	if err != nil {
		return nil, err
	}
	var adding sync.Mutex
	traced := *e.store
	traced.Trace = func(q *source.Statement) {
		adding.Lock()
		defer adding.Unlock()
		queries = append(queries, q)
	}
	x.Store = &traced
	_, err = e.readRows(ctx, x)
	return queries, err
}

// explainQuery returns the parameters as comments, and the statement with their
// values.
func explainQuery(q *source.Statement) string {
	var b strings.Builder
	for _, p := range q.Params {
		fmt.Fprintf(&b, "-- %-20s %s\n", p.Name, source.SQLLiteral(p.Value))
	}
	b.WriteString(strings.TrimSpace(q.InlinedSQL()) + ";\n")
	return b.String()
}
