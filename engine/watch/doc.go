// Package watch does what happens without a request: it records looks, computes the statuses of lists, writes messages about
// decisions, checks, starts and stops, stops campaigns that are decided, and delivers messages to webhooks.
package watch
