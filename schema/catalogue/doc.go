// Package catalogue is the small config table: accounts, their tokens, and
// per website the goals, targets, campaigns and widgets.
//
// A definition is what a catalogue file declares; a state is what happens to
// it (active, dates, the shares as they changed). They are separate rows, so
// that neither overwrites the other. Servers read a Snapshot from memory,
// which Catalogue refreshes from the store.
package catalogue
