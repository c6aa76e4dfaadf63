// Package schema defines the tables of a store: migrations, connections to
// embedded stores and to ClickHouse servers, and the event row.
//
// Subpackages: catalogue (websites, campaigns, widgets and API tokens), ingest
// (validates events and stores them as they were sent) and schematest (migrated
// stores for tests).
package schema
