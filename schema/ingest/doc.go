// Package ingest turns what arrives into rows of the events table, each event
// exactly once.
//
//  1. a reader (NDJSON, CSV; gzip and zstd) gives lines with their numbers;
//  2. a Mapping, where the file is not in our own fields, turns a line into
//     one or more sets of fields;
//  3. build checks every field and makes one row per exposure;
//  4. Writer removes what is stored already and inserts the rest.
//
// Import runs the four on a file, Inbox the last two on what other clients of
// the store left in events_inbox. Where several processes write to a store,
// Writer looks once more after it inserted, and takes back what came second.
package ingest
