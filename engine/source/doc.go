// Package source runs the statements of reports: a Query has the text of a statement with its bound
// parameters, an Execution is a plan on a store, and a StoreError says why a store did not answer.
package source
