package loadgen

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// peerRow is what a peer computes for a variation, in one cell of a breakdown.
type peerRow struct {
	variation string
	dimension string
	visitors  uint64
	totals    []float64 // integers below 2^53, so exact
	squares   []float64
}

type peerAnswer []peerRow

func (p *peers) ask(ctx context.Context, text string) (peerAnswer, error) {
	rows, err := p.Conn.Query(ctx, text, p.parameters()...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var answer peerAnswer
	for rows.Next() {
		var r peerRow
		if err := rows.Scan(&r.variation, &r.dimension, &r.visitors, &r.totals, &r.squares); err != nil {
			return nil, err
		}
		answer = append(answer, r)
	}
	return answer, rows.Err()
}

// compare holds a peer's numbers against ours where both mean the same:
// visitors who saw one variation alone, and sums over their goals from the
// first view on. They are integers, and must be equal.
func (p *peers) compare(c *contestant, answers []peerAnswer, ours []Measured) {
	ourRows := map[string]*Measured{}
	for i := range ours {
		ourRows[rowName(strconv.FormatInt(ours[i].VariationID, 10), ours[i].Dimension)] = &ours[i]
	}
	next := 0 // of the measures
	for _, answer := range answers {
		seen, width := 0, 0
		for _, theirs := range answer {
			if strings.Contains(theirs.variation, "multiple") {
				continue
			}
			seen++
			width = len(theirs.totals)
			name := rowName(theirs.variation, theirs.dimension)
			our := ourRows[name]
			if our == nil {
				p.differ(c, "%s: not in our report", name)
				continue
			}
			p.equal(c, name+" visitors", float64(theirs.visitors), our.Visitors)
			for i, total := range theirs.totals {
				p.equal(c, fmt.Sprintf("%s sum %d", name, next+i+1), total, c.measures[next+i](our))
			}
		}
		next += width
		if seen != len(ours) {
			p.differ(c, "%d rows, ours has %d", seen, len(ours))
		}
	}
}

func rowName(variation, dimension string) string {
	if dimension == "" {
		return "variation " + variation
	}
	return "variation " + variation + " " + dimension
}

func (p *peers) equal(c *contestant, what string, theirs float64, ours int64) {
	p.result.Compared++
	if theirs != float64(ours) {
		p.differ(c, "%s: %.0f, ours %d", what, theirs, ours)
	}
}

func (p *peers) differ(c *contestant, format string, args ...any) {
	where := fmt.Sprintf("%s, %s, %s: ", c.who, c.question, tableNames[c.table])
	p.result.Differ = append(p.result.Differ, where+fmt.Sprintf(format, args...))
}
