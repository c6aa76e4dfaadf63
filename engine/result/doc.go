// Package result computes the body of a report from its rows: metrics,
// comparisons, checks, power and the conclusion, with their texts.
package result
