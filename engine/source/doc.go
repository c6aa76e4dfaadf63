// Package source runs the statements of reports: a Statement has the text and the bound parameters, and a StoreError says
// why a store did not answer.
package source
