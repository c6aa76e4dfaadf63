// Package embedded runs ClickHouse inside the process and lets clickhouse-go
// talk to it, so that the rest of the program knows one driver and one SQL
// whether its data lives in a folder, on a server or on a cluster.
//
// # How a statement travels
//
//  1. clickhouse-go makes an HTTP request; [Engine.ClientOptions] gives it a
//     transport in place of a network.
//  2. The transport reads the statement, its settings, its parameters and its
//     current database out of the request (request).
//  3. A statement takes a connection of the library out of a pool (session),
//     which is first brought to those settings and that database.
//  4. A query's result is fetched in chunks and an INSERT's rows are appended
//     in chunks, so neither is ever held as a whole (answer, statement).
//  5. When the caller's context ends, KILL QUERY from a connection of its own
//     stops the statement.
//
// The library writes its Native format at revision 0. The driver reads at the
// revision that the server named when the connection was opened, so the
// transport answers that first question itself and names revision 0: results
// then pass through untouched.
//
// # Limits
//
// A process holds one open Engine, and a folder is open in one process. External
// tables, HTTP sessions, roles and compression between driver and engine are
// not supported and are refused with an error. Statements do not share state:
// SET, USE and temporary tables last for their own statement only, as over
// HTTP. The query id that a caller sets is not used. In the database default,
// and in no other, a table that does not exist is looked for as a file of the
// working directory.
package embedded
