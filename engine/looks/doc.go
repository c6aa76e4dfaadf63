// Package looks schedules the looks of a subject and computes the result of each look: a group
// sequential test with one error budget over all looks of a campaign.
package looks
