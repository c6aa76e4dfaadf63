// Package stats turns exact sums per variation into comparisons.
package stats
