// Package query defines the request for a report in terms of the API. Its parser is strict and
// returns all errors together. The package does not depend on tables.
package query
