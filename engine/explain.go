package engine

import (
	"context"
	"fmt"
	"strings"

	"lifthouse/engine/plan"
	"lifthouse/engine/source"
)

// SQL returns the statement that computes a report from the events, with the
// plan, the chosen source and the parameters as comments. A report with a series has a
// second statement; each of the two begins at a line that begins with "-- statement". Each
// statement can be run as it is. The engine itself binds the parameters, and may read the
// same rows from a faster source.
func (e *Engine) SQL(ctx context.Context, p *plan.Plan) (string, error) {
	x, s, err := e.prepare(ctx, p)
	if err != nil {
		return "", err
	}
	if x, err = bounded(ctx, x, source.NameReference); err != nil {
		return "", err
	}
	query, err := x.MomentsQuery()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for line := range strings.Lines(p.String()) {
		b.WriteString("-- " + line)
	}
	chosen, reason := choose(x, &s, e.store.Limits)
	fmt.Fprintf(&b, "-- source      %s: %s\n", chosen.Name(), reason)
	if p.Interval == "" {
		return b.String() + explained(query), nil
	}
	series, err := x.SeriesQuery()
	if err != nil {
		return "", err
	}
	return b.String() + "-- statement 1 of 2: the report\n" + explained(query) + "\n-- statement 2 of 2: the series\n" + explained(series), nil
}

// explained returns the parameters as comments, and the statement with their
// values.
func explained(q *source.Query) string {
	var b strings.Builder
	for _, p := range q.Params {
		fmt.Fprintf(&b, "-- %-20s %s\n", p.Name, source.Literal(p.Value))
	}
	b.WriteString(strings.TrimSpace(q.Inlined()) + ";\n")
	return b.String()
}
