// Package facts maintains the table of facts: the rows that package fold makes of each
// visitor's events, and sums of these rows. A refresh folds the visitors with new events. It
// inserts the changes, and the position up to which events are folded, as one atomic block.
// Reports are statements over the table.
package facts
