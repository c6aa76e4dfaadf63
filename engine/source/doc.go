// Package source reads the rows of a report from a store. There are several
// sources of the same rows:
//
//   - reference: moments.sql and reference_visitors.sql count visitor by visitor.
//     They express every report and define the meaning of each number.
//   - single pass: single_pass.sql returns the same rows in one pass, except for a
//     few visitors whose ids it returns; their events are counted in this process.
//     With a dimension it returns hashes of the values, and names.sql finds the
//     values.
//   - in-process: in_process.sql returns the events of a subject with few events,
//     and package visit counts them.
//
// Package rollup has another source. outliers.sql finds the bounds of a z-score.
// series.sql returns what each bucket of a series adds.
//
// An Execution is a plan on a store. Its methods compile the plan into a Query:
// the text of a file in sql/ and its bound parameters. Only this package and
// package rollup know tables and columns.
package source
