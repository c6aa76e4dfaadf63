// Package visitors maintains the tables exposures and conversions: a row per
// visitor, and a row per counted goal event of a visitor, of every subject with
// rollups. Reports that no cube expresses are counted from them. The package
// rollup decides when they are written, and stores what is complete.
package visitors
