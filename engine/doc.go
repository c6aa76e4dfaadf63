// Package engine answers requests for reports. A report goes in a straight
// line; nothing goes back along it:
//
//  1. ParseReport reads a query string into a Request: strict, with all faults
//     at once; it knows the API's words and no table.
//  2. NewPlan settles the Request's meaning against the catalogue: the
//     population, the window, the goal, the variations and their control. A
//     Plan prints itself.
//  3. query.go compiles the Plan into a Query: the text of a file under sql/,
//     with slots that only this package fills, and the values as parameters. It
//     is the only place that knows columns. moments.sql is the definition:
//     whatever counts, visitor by visitor. single_pass.sql gives the same rows in one
//     pass, but for a few visitors whom it names; moments.sql counts those.
//     Only values of a dimension that may be top ones stand alone in it, as
//     hashes; names.sql finds their names. in_process.sql hands over the events of a
//     subject that has few, which few.go counts to the same rows.
//     rollup.sql adds up what package settle keeps of a subject that has many,
//     and rollup_top.sql finds the most visited of very many values.
//     outliers.sql finds the bounds that a z-score means, series.sql what each
//     bucket of a series adds.
//  4. Plan.settled, where what is settled can express the plan, or else
//     Plan.moments runs them. A row is the Moments of the visitors of one
//     variation and one value of the dimension: exact sums, which merge, so
//     that totals need no query of their own.
//  5. gather merges rows into cells, and package stats compares each variation
//     of a cell with control.
//  6. Results is the body that is written.
//
// What a number means is said where it is computed: who is counted and which
// events in sql/reference_visitors.sql, the formulas in package stats. Beside this line,
// Question is the calculator: sums of somebody else's in, the same answers out.
package engine
