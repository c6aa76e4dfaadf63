// Package engine computes reports. A report passes through these packages, in one
// direction:
//
//  1. query: ParseReport parses a query string into a Request. It is strict and returns all
//     errors together. It knows API names but no tables.
//  2. plan: New resolves the Request against the catalogue into a Plan: a Question (the
//     population, the window, the goal, the variations) and what decides it.
//  3. facts: Reader.ReadRows answers the Question with rows. Each row has the moments of one variation and one
//     dimension value. Moments are exact sums over visitors, so totals need no second query.
//     Package moments defines them.
//  4. result: New merges rows into slices. Package stats compares the variations of
//     a slice with control. A Report is the body of the response.
//  5. render: writes a Report as CSV, as a forest plot or as terminal tables.
//
// The results of the looks at the declared question are part of a report. Judgement has them; package watch records them
// and reports and carries out the decision.
//
// Package fold defines which visitors and events count. Package stats has the formulas. Package calculator computes
// the same comparisons from given sums.
package engine
