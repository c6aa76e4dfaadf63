// Package visit defines what a visitor contributes to a report, in Go: the first
// view, the events that count, the totals, and how they change the sums over
// visitors. The in-process source, the rollup refresh and the recounted visitors
// of a single pass use it. The other definitions are SQL: the reference
// (engine/source/sql/reference_visitors.sql), the single pass
// (engine/source/sql/single_pass.sql) and the rebuild of a rollup
// (engine/rollup/sql/rebuild.sql). Tests compare all four with a fifth one.
package visit
