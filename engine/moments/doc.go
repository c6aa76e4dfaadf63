// Package moments defines the moments of a report, which are exact sums over visitors. It also
// defines their rows, the bounds of outliers, and caps.
package moments
