// Package plan resolves a request against the catalogue into a plan: what is
// counted, for which visitors, and which variations are compared.
package plan
