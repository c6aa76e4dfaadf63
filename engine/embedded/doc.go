// Package embedded runs ClickHouse inside the process and connects clickhouse-go to it. The rest of the program uses
// one driver and one SQL dialect, whether its data is in a folder, on a server or on a cluster.
//
// # How a statement is run
//
//  1. clickhouse-go makes an HTTP request. [Engine.ClientOptions] sets a
//     transport that replaces the network.
//  2. The transport reads the statement, its settings, its parameters and its
//     current database from the request (request).
//  3. The statement takes a connection of the library from a pool (session). These settings and
//     this database are first applied to the connection.
//  4. The result of a query is fetched in chunks, and the rows of an INSERT are
//     appended in chunks. Neither is ever completely in memory (answer,
//     statement).
//  5. When the caller's context ends, KILL QUERY on a separate connection stops
//     the statement.
//
// The library writes its Native format at revision 0. The driver reads at the revision that the server returned when
// the connection was opened. So the transport answers the first statement itself and returns revision 0. Results then
// pass through unchanged.
//
// # Limits
//
// A process has at most one open Engine, and a folder is open in at most one process. External tables, HTTP sessions,
// read-only sessions, roles, compression between driver and engine, SET, USE and temporary tables must not be used:
// some would last for later statements. The query id that a caller sets is ignored. Only in the database default, a
// table that does not exist is looked up as a file in the working directory.
package embedded
