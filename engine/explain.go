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
	fmt.Fprintf(&b, "-- path        %s\n", e.pathOf(ctx, plan))
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

// pathOf says where the engine takes the rows from.
func (e *Engine) pathOf(ctx context.Context, plan *Plan) string {
	if state, err := e.rollupFor(ctx, plan); err == nil {
		if cubes, expressible := plan.cubeSet(plan.windowed(state.newest)); expressible {
			return fmt.Sprintf("%s: the table rollups, cubes %s", PathRollup, strings.Join(cubes.names(), "; "))
		}
	}
	if plan.path(e.store.limits) == PathInProcess {
		return PathInProcess + ": the events, counted in the server"
	}
	return PathReference + ": the events, counted in the store"
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
