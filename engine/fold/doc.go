// Package fold is the only definition of what a visitor contributes to reports. It turns all events of a visitor into
// rows, computes the changes from stored to wanted rows, and sums rows. It is pure: it knows neither the store nor the
// time.
package fold
