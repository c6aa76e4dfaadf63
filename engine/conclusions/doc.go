// Package conclusions keeps the conclusions that were named, in the table of the same
// name.
package conclusions
