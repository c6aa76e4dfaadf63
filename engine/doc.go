// Package engine computes reports. A report passes through these steps, in one
// direction:
//
//  1. ParseReport parses a query string into a Request. It is strict and returns all
//     errors together. It knows the names of the API, and no tables.
//  2. NewPlan resolves the Request against the catalogue into a Plan: the population,
//     the window, the goal, the variations and control.
//  3. query.go compiles the Plan into a Query: the text of a file in sql/ and its bound
//     parameters. Only this file knows columns. There are several sources of the rows:
//     - reference: moments.sql and reference_visitors.sql count visitor by visitor. They
//     express every report and define the meaning of each number.
//     - single pass: single_pass.sql returns the same rows in one pass, except for a
//     few visitors whose ids it returns; the reference counts those. With a dimension
//     it returns hashes of the values, and names.sql finds the values.
//     - in-process: in_process.sql returns the events of a subject with few events, and
//     in_process.go counts them.
//     - rollup: rollup.sql adds up the cubes that package rollup maintains, and
//     rollup_top.sql finds the most frequent of very many values.
//     outliers.sql finds the bounds of a z-score. series.sql returns what each bucket of
//     a series adds.
//  4. Each row has the Moments of the visitors of one variation and one value of the
//     dimension. Moments are exact sums, so totals need no second query.
//  5. sumRows merges rows into cells. Package stats compares the variations of a cell
//     with control.
//  6. Results is the body of the response.
//
// sql/reference_visitors.sql defines which visitors and events count. Package
// stats has the formulas. The calculator, CalculatorInput, computes the same
// comparisons from given sums.
package engine
