// Package story explains what reports make of one visitor: where the visitor counts,
// which events count, and why the others do not. It states the definitions that the
// reports compute, for one visitor and in words. Tests compare both.
package story
