package engine

import (
	"context"
	"fmt"
	"strings"
)

// SQL returns the statements that answer a request, each runnable as it
// stands, with the plan and the parameters as comments. The engine itself
// binds the parameters, and takes a quicker way to the same rows where there
// is one.
func (e *Engine) SQL(ctx context.Context, r Request) (string, error) {
	plan, err := e.plan(ctx, r)
	if err != nil {
		return "", err
	}
	query, err := plan.momentsQuery()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for line := range strings.Lines(plan.String()) {
		b.WriteString("-- " + line)
	}
	b.WriteString(query.explained())
	if plan.Interval != "" {
		series, err := plan.seriesQuery()
		if err != nil {
			return "", err
		}
		b.WriteString("\n-- the series\n" + series.explained())
	}
	return b.String(), nil
}

// explained lists the parameters and writes the statement with their values.
func (q *Query) explained() string {
	var b strings.Builder
	for _, p := range q.Params {
		fmt.Fprintf(&b, "-- %-20s %s\n", p.Name, literal(p.Value))
	}
	b.WriteString(strings.TrimSpace(q.inlined()) + ";\n")
	return b.String()
}
