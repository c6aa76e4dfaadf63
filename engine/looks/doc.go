// Package looks says when a subject is looked at, and what each look found: a group
// sequential test with one error budget over all looks of a campaign.
package looks
