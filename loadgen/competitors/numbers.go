package competitors

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// peerRow is a row of a competitor's query: one variation, or its visitors with one
// value of a dimension.
type peerRow struct {
	variation string
	dimension string
	visitors  uint64
	totals    []float64 // integers below 2^53, which float64 represents exactly
	squares   []float64
}

type peerAnswer []peerRow

func (r *runner) readAnswer(ctx context.Context, text string, question Question) (peerAnswer, error) {
	rows, err := r.Conn.Query(ctx, text, r.questionParameters(question)...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var answer peerAnswer
	for rows.Next() {
		var row peerRow
		if err := rows.Scan(&row.variation, &row.dimension, &row.visitors, &row.totals, &row.squares); err != nil {
			return nil, err
		}
		answer = append(answer, row)
	}
	return answer, rows.Err()
}

// compareAnswers compares a competitor's numbers with the Lifthouse report. All definitions
// agree on the visitors who saw exactly one variation, and on the sums over their goals
// after the first view. These numbers are integers and must be equal.
func (r *runner) compareAnswers(c *computation, answers []peerAnswer, expected []Counts) {
	expectedRows := map[string]*Counts{}
	for i := range expected {
		expectedRows[rowName(strconv.FormatInt(expected[i].VariationID, 10), expected[i].Dimension)] = &expected[i]
	}
	firstTotal := 0 // index in c.totals of the answer's first total
	for _, answer := range answers {
		rows, width := 0, 0
		for _, row := range answer.withOthers(expectedRows) {
			if strings.Contains(row.variation, "multiple") {
				continue
			}
			rows++
			width = len(row.totals)
			name := rowName(row.variation, row.dimension)
			want := expectedRows[name]
			if want == nil {
				r.addDifference(c, "%s: missing in the Lifthouse report", name)
				continue
			}
			r.compareNumber(c, name+" visitors", float64(row.visitors), want.Visitors)
			for i, total := range row.totals {
				r.compareNumber(c, fmt.Sprintf("%s total %d", name, firstTotal+i+1), total, c.totals[firstTotal+i](want))
			}
		}
		firstTotal += width
		if rows != len(expected) {
			r.addDifference(c, "%d rows; the Lifthouse report has %d", rows, len(expected))
		}
	}
}

// others is the name of the report row that combines the smaller values of a
// dimension.
const others = "(other)"

// withOthers returns the rows with the smaller values combined: for each variation,
// the values that the report has under others become one row.
func (a peerAnswer) withOthers(expected map[string]*Counts) peerAnswer {
	var rows peerAnswer
	rest := map[string]*peerRow{}
	for _, row := range a {
		if expected[rowName(row.variation, others)] == nil || expected[rowName(row.variation, row.dimension)] != nil {
			rows = append(rows, row)
			continue
		}
		sum := rest[row.variation]
		if sum == nil {
			row.totals = slices.Clone(row.totals)
			row.dimension = others
			rest[row.variation] = &row
			continue
		}
		sum.visitors += row.visitors
		for i, total := range row.totals {
			sum.totals[i] += total
		}
	}
	for _, row := range rest {
		rows = append(rows, *row)
	}
	return rows
}

func rowName(variation, dimension string) string {
	if dimension == "" {
		return "variation " + variation
	}
	return "variation " + variation + " " + dimension
}

func (r *runner) compareNumber(c *computation, name string, got float64, want int64) {
	r.result.Compared++
	if got != float64(want) {
		r.addDifference(c, "%s: %.0f; the Lifthouse report has %d", name, got, want)
	}
}

func (r *runner) addDifference(c *computation, format string, args ...any) {
	prefix := fmt.Sprintf("%s, %s, %s: ", c.system, c.question, c.table)
	r.result.Differences = append(r.result.Differences, prefix+fmt.Sprintf(format, args...))
}
