// Package calculator compares variations from given sums, without a store.
package calculator
