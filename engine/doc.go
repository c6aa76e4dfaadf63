// Package engine answers requests for reports. A report goes in a straight
// line; nothing goes back along it:
//
//  1. ParseReport reads a query string into a Request: strict, with all faults
//     at once; it knows the API's words and no table.
//  2. NewPlan settles the Request's meaning against the catalogue: the
//     population, the window, the goal, the variations and their control. A
//     Plan prints itself.
//  3. Plan.momentsQuery compiles the Plan into one Query: the text of a file
//     under sql/, with slots that only this package fills, and the values as
//     parameters. It is the only place that knows columns.
//  4. scanRows runs the Query. A row is the Moments of the visitors of one
//     variation and one value of the dimension: exact sums, which merge, so
//     that totals need no second query.
//  5. gather merges rows into cells, and package stats compares each variation
//     of a cell with control.
//  6. Results is the body that is written.
//
// What a number means is said where it is computed: who is counted and which
// events in sql/moments.sql, the formulas in package stats.
package engine
