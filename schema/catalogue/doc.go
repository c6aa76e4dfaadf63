// Package catalogue stores the configuration of a store: accounts, API tokens, and
// for each website its goals, targets, campaigns and widgets.
//
// A catalogue file declares the definition of a resource. Its state changes at run
// time: active, dates and the history of shares. Definition and state are separate
// rows, so neither overwrites the other. Servers read a Snapshot from memory, which
// Catalogue refreshes from the store.
package catalogue
