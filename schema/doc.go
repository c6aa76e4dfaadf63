// Package schema defines the tables of a store: migrations, connections to
// embedded stores and to ClickHouse servers, and the event row.
//
// Subpackages: catalogue (accounts with their websites, goals, targets, campaigns, widgets,
// webhooks and tokens), ingest (validates events and stores them as they were sent), outbox
// (messages to webhooks, and their attempts) and schematest (migrated stores for tests).
package schema
