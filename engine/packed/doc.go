// Package packed keeps the events of subjects with few events in memory, about 14
// bytes per event. A report counts them without a statement to the store. Package
// source reads them from the store; the writer adds what it inserts.
package packed
