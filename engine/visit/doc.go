// Package visit has the moments of a report: exact sums over visitors, the rows that
// have them, and the first view that decides to which row a visitor belongs.
package visit
