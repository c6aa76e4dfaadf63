// Package live has the live totals of all subjects of a store: numbers of events,
// last acceptance times, counters, and versions by which clients notice changes.
package live
