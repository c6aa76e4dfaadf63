// Package fold is the one definition of what a visitor contributes to reports: the rows
// that all events of a visitor amount to, what turns stored rows into others, and sums
// over rows. It is pure: it knows neither the store nor the time.
package fold
