// Package story puts in words how reports count one visitor: where the visitor counts, which events count, and why
// other events do not. The reasons are those of package fold, and of the plan of each report.
package story
