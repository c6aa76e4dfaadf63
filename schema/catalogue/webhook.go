package catalogue

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// Webhook is an address that receives messages about the campaigns and widgets of an account.
type Webhook struct {
	ID     int64    `yaml:"id" json:"id"`
	URL    string   `yaml:"url" json:"url"`
	Events []string `yaml:"events,omitempty" json:"events,omitempty"` // of WebhookEvents; empty: all
	Format string   `yaml:"format" json:"format" default:"standard"`  // FormatStandard or FormatSlack
	// path on the server, of the key that signs the messages
	SecretFile string `yaml:"secretFile,omitempty" json:"secretFile,omitempty"`
}

// The events that webhooks receive.
const (
	EventDecisionChanged = "decision.changed"
	EventCheckFailed     = "check.failed"
	EventCheckCleared    = "check.cleared"
	EventCampaignStarted = "campaign.started"
	EventCampaignStopped = "campaign.stopped"
)

// WebhookEvents are the values of Webhook.Events.
var WebhookEvents = []string{
	EventDecisionChanged, EventCheckFailed, EventCheckCleared, EventCampaignStarted, EventCampaignStopped,
}

// The formats of messages: as Standard Webhooks (standardwebhooks.com) specifies, or as the incoming webhooks of Slack
// expect them.
const (
	FormatStandard = "standard"
	FormatSlack    = "slack"
)

// The values of Campaign.AutoStop: the decisions at which the server stops a campaign.
const (
	AutoStopRollBack = "rollBack"
	AutoStopInvalid  = "invalid"
	AutoStopBoth     = "both"
)

// StopsAt reports whether the campaign is to be stopped at a decision.
func (c *Campaign) StopsAt(decision string) bool {
	return c.AutoStop == decision || c.AutoStop == AutoStopBoth &&
		(decision == AutoStopRollBack || decision == AutoStopInvalid)
}

// EventsTaken returns the events that the webhook receives.
func (w *Webhook) EventsTaken() []string {
	if len(w.Events) == 0 {
		return WebhookEvents
	}
	return w.Events
}

// Host returns the host of the URL. The rest of the URL may be a secret.
func (w *Webhook) Host() string {
	if u, err := url.Parse(w.URL); err == nil {
		return u.Host
	}
	return ""
}

// isURL reports whether a text is an absolute URL with one of the schemes, without a user and a fragment.
func isURL(text string, schemes ...string) bool {
	u, err := url.Parse(text)
	return err == nil && slices.Contains(schemes, u.Scheme) && u.Hostname() != "" && u.User == nil &&
		u.Fragment == "" && len(text) <= maxURL
}

// The maximum length of a URL in bytes, and the maximum number of webhooks of an account: a server polls each
// of them.
const (
	maxURL      = 2048
	maxWebhooks = 20
)

func (c *checker) checkWebhooks(path string, hooks []Webhook) {
	c.AddIf(len(hooks) > maxWebhooks,
		path+".webhooks", len(hooks), fmt.Sprintf("must have at most %d webhooks", maxWebhooks))
	taken := ids{}
	for i := range hooks {
		hook, at := &hooks[i], fmt.Sprintf("%s.webhooks[%d]", path, i)
		c.checkID(at, hook.ID, taken)
		c.AddIf(!isURL(hook.URL, "http", "https"), at+".url", hook.URL, fmt.Sprintf("must be an http:// or https:// "+
			"URL of at most %d bytes, without a user and a fragment", maxURL))
		for j, event := range hook.Events {
			c.oneOf(fmt.Sprintf("%s.events[%d]", at, j), event, WebhookEvents)
			c.AddIf(slices.Index(hook.Events, event) < j, fmt.Sprintf("%s.events[%d]", at, j), event, "is not unique")
		}
		c.oneOf(at+".format", hook.Format, []string{FormatStandard, FormatSlack})
		switch {
		case hook.Format == FormatSlack && hook.SecretFile != "":
			c.Add(at+".secretFile", hook.SecretFile, "must be omitted: messages to Slack are not signed")
		case hook.Format == FormatStandard && hook.SecretFile == "":
			c.Add(at+".secretFile", "",
				"is required: the path on the server of a file with the key that signs the messages, "+
					"such as from: echo whsec_$(openssl rand -base64 24)")
		case hook.SecretFile != "" && (!filepath.IsAbs(hook.SecretFile) || strings.ContainsRune(hook.SecretFile, 0)):
			c.Add(at+".secretFile", hook.SecretFile, "must be an absolute path")
		}
	}
}
