// Package schema holds the tables: migrations, the connection that all
// commands share, the event row, and its one writer's insert.
//
// Subpackages: catalogue (who may ask and what is measured), ingest (files of
// events to rows, exactly once) and schematest (a migrated store for tests).
package schema
