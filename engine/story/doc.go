// Package story explains in words how reports count one visitor: where the visitor counts,
// which events count, and why other events do not. It restates the definitions that reports
// compute. Tests compare its results with reports.
package story
