// Package query has the request of a report in terms of the API, and its strict
// parser, which returns all errors together. It knows no tables.
package query
