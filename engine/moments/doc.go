// Package moments has the moments of a report: exact sums over visitors, the rows that
// have them, bounds of outliers and caps.
package moments
