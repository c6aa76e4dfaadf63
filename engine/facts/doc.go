// Package facts keeps the table of facts: the rows that package fold makes of the events of
// each visitor, and sums of them. A refresh folds the visitors with new events and inserts
// what changed, with the position up to which events are folded, as one atomic block. Reports
// are statements over the table.
package facts
