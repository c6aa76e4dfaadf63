// Package outbox stores what people and programs outside are notified of, and the attempts to deliver it to webhooks. A
// message is written in the same step as the conclusion or change that it reports, and is delivered later. So a message
// is not lost if the process ends in between.
package outbox
