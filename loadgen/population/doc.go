// Package population generates synthetic visitors and their events, with planted
// effects whose size is known exactly.
//
// A Scenario describes websites, goals, campaigns, widgets and their effects.
// GenerateEvents produces its events. Scenario.ComputeTruth computes the rates,
// means and lifts that a correct report estimates. Scenario.CatalogueFile returns
// the matching catalogue. SimpleCampaign is a smaller generator for tests and demos.
package population
