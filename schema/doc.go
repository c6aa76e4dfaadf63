// Package schema defines the tables of a store: migrations, connections to
// embedded stores and to ClickHouse servers, the event row, rollup states, and
// the integrity checks of stored data.
//
// Subpackages: catalogue (websites, campaigns, widgets and API tokens), ingest
// (validates events and stores each one exactly once) and schematest (migrated
// stores for tests).
package schema
