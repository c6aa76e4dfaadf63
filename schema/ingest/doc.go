// Package ingest validates events and stores them in the events table.
//
//  1. A reader (NDJSON, CSV or Parquet; gzip or zstd) returns lines with their numbers.
//  2. A Mapping converts lines that do not have Lifthouse's field names into the
//     fields of one or more events.
//  3. rules.validate checks the fields and returns one row per exposure.
//  4. Writer inserts the rows. It does not look up stored events: an event that is stored
//     several times counts once, because the fold removes copies.
//
// ImportFile applies all steps to a file. Inbox applies the last two to the rows that other clients inserted into
// events_inbox.
package ingest
