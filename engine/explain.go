package engine

import (
	"context"
	"fmt"
	"strings"
)

// SQL returns the statements that compute a report from the events, with the
// plan and the parameters as comments. Each statement can be run as it is. The
// engine itself binds the parameters, and may read the same rows from a faster
// source.
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
	fmt.Fprintf(&b, "-- path        %s\n", e.pathOf(ctx, plan))
	b.WriteString(query.explained())
	if plan.Interval != "" {
		series, err := plan.seriesQuery()
		if err != nil {
			return "", err
		}
		b.WriteString("\n-- series\n" + series.explained())
	}
	return b.String(), nil
}

// pathOf returns the source of the rows, with details.
func (e *Engine) pathOf(ctx context.Context, plan *Plan) string {
	if state, err := e.rollupFor(ctx, plan); err == nil {
		if cubes, expressible := plan.cubeSet(plan.windowed(state.newest)); expressible {
			return fmt.Sprintf("%s: the table rollups, cubes %s", PathRollup, strings.Join(cubes.names(), "; "))
		}
	}
	if plan.path(e.store.limits) == PathInProcess {
		return PathInProcess + ": the events, counted by the server process"
	}
	return PathReference + ": the events, counted by the store"
}

// explained returns the parameters as comments, and the statement with their
// values.
func (q *Query) explained() string {
	var b strings.Builder
	for _, p := range q.Params {
		fmt.Fprintf(&b, "-- %-20s %s\n", p.Name, literal(p.Value))
	}
	b.WriteString(strings.TrimSpace(q.inlined()) + ";\n")
	return b.String()
}
