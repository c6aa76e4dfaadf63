// Package ingest validates events and stores each one exactly once in the events
// table.
//
//  1. A reader (NDJSON, CSV or Parquet; gzip or zstd) returns lines with their numbers.
//  2. A Mapping converts lines that do not have Lifthouse's field names into the
//     fields of one or more events.
//  3. build validates the fields and returns one row per exposure.
//  4. Writer skips rows that are already stored and inserts the others.
//
// ImportFile applies all steps to a file. Inbox applies the last two to the rows that
// other clients inserted into events_inbox. If several processes write to a
// store, Writer checks for duplicates again after the insert and removes its own
// later copies.
package ingest
