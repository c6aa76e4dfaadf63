package catalogue

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"lifthouse/schema/secrets"
)

// Webhook is an address that receives messages about the campaigns and widgets of an account.
type Webhook struct {
	ID     int64    `yaml:"id" json:"id"`
	URL    string   `yaml:"url" json:"url"`
	Events []string `yaml:"events,omitempty" json:"events,omitempty"` // of WebhookEvents; empty: all
	Format string   `yaml:"format" json:"format" default:"standard"`  // FormatStandard or FormatSlack
	// The key that signs the messages, or the path on the server of a file with it, which only the command line may
	// name. Files do not show the key.
	Secret     string `yaml:"secret,omitempty" json:"secret,omitempty"`
	SecretFile string `yaml:"secretFile,omitempty" json:"secretFile,omitempty"`
}

// ReadKey returns the key that signs the messages, as text.
func (w *Webhook) ReadKey(folder *secrets.Folder) (string, error) {
	if w.Secret != "" {
		return w.Secret, nil
	}
	key, err := folder.ReadSecret(w.SecretFile)
	if err != nil {
		return "", fmt.Errorf("secretFile: %w", err)
	}
	if fault := keyFault(string(key)); fault != "" {
		return "", fmt.Errorf("secretFile: %s: %s", w.SecretFile, fault)
	}
	return string(key), nil
}

// The beginning of a key, and its minimum length in bytes before its encoding (Standard Webhooks, "Signature scheme").
const (
	keyPrefix = "whsec_"
	minKey    = 24
)

// keyFault returns what is allowed instead of the key of a webhook, or an empty string.
func keyFault(text string) string {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, keyPrefix))
	isKey := err == nil && strings.HasPrefix(text, keyPrefix)
	if !isKey || len(key) < minKey || len(text) > secrets.MaxSize {
		return fmt.Sprintf("must have %s and the base64 encoding of at least %d bytes, such as from: echo "+
			"%[1]s$(openssl rand -base64 %[2]d)", keyPrefix, minKey)
	}
	return ""
}

// keepSecret sets the stored key of a webhook in a file, which does not show it.
func (w *Webhook) keepSecret(stored *Webhook) {
	if w.Secret == "" && w.SecretFile == "" && w.Format == FormatStandard {
		w.Secret = stored.Secret
	}
}

// The events that webhooks receive.
const (
	EventDecisionChanged = "decision.changed"
	EventCheckFailed     = "check.failed"
	EventCheckCleared    = "check.cleared"
	EventCampaignStarted = "campaign.started"
	EventCampaignStopped = "campaign.stopped"
	EventFollowUp        = "followUp.recorded"
)

// WebhookEvents are the values of Webhook.Events.
var WebhookEvents = []string{
	EventDecisionChanged, EventCheckFailed, EventCheckCleared, EventCampaignStarted, EventCampaignStopped,
	EventFollowUp,
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
	isOneOfBoth := decision == AutoStopRollBack || decision == AutoStopInvalid
	return c.AutoStop == decision || c.AutoStop == AutoStopBoth && isOneOfBoth
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
	if err != nil || len(text) > maxURL {
		return false
	}
	isAbsolute := slices.Contains(schemes, u.Scheme) && u.Hostname() != ""
	return isAbsolute && u.User == nil && u.Fragment == ""
}

// The maximum length of a URL in bytes, and the maximum number of webhooks of an account: a server polls each
// of them.
const (
	maxURL      = 2048
	maxWebhooks = 20
)

func (c *checker) checkWebhooks(path string, hooks []Webhook, stored map[int64]LiveWebhook) {
	c.AddIf(len(hooks) > maxWebhooks,
		path+".webhooks", len(hooks), fmt.Sprintf("must have at most %d webhooks", maxWebhooks))
	taken := ids{}
	for i := range hooks {
		hook := hooks[i]
		at := fmt.Sprintf("%s.webhooks[%d]", path, i)
		before := stored[hooks[i].ID]
		hook.keepSecret(&before.Webhook)
		c.checkID(at, hook.ID, taken)
		c.AddIf(!isURL(hook.URL, "http", "https"), at+".url", hook.URL, fmt.Sprintf("must be an http:// or https:// "+
			"URL of at most %d bytes, without a user and a fragment", maxURL))
		for j, event := range hook.Events {
			c.oneOf(fmt.Sprintf("%s.events[%d]", at, j), event, WebhookEvents)
			c.AddIf(slices.Index(hook.Events, event) < j, fmt.Sprintf("%s.events[%d]", at, j), event, "is not unique")
		}
		c.oneOf(at+".format", hook.Format, []string{FormatStandard, FormatSlack})
		c.checkSecret(at, &hook, before.SecretFile)
	}
}

// checkSecret checks the key of a webhook. storedFile is the file of the stored webhook.
func (c *checker) checkSecret(at string, hook *Webhook, storedFile string) {
	file, isNamed := at+".secretFile", hook.SecretFile != ""
	switch {
	case hook.Format == FormatSlack:
		c.AddIf(isNamed, file, hook.SecretFile, "must be omitted: messages to Slack are not signed")
		c.AddIf(hook.Secret != "", at+".secret", nil, "must be omitted: messages to Slack are not signed")
		return
	case hook.Secret != "":
		fault := keyFault(hook.Secret)
		c.AddIf(fault != "", at+".secret", nil, fault)
		c.AddIf(isNamed, file, hook.SecretFile, "must not be given with secret")
	case hook.Format == FormatStandard && !isNamed:
		c.AddField(at+".secret", "is required: the key that signs the messages, such as from: echo "+
			"whsec_$(openssl rand -base64 24); lifthouse apply also accepts secretFile, the path on the server of a "+
			"file with it")
	}
	switch isAbsolute := filepath.IsAbs(hook.SecretFile) && !strings.ContainsRune(hook.SecretFile, 0); {
	case c.isRemote && isNamed && hook.SecretFile != storedFile:
		c.Add(file, hook.SecretFile, "must be omitted: only lifthouse apply on the server may name a file; give the "+
			"key in secret")
	case isNamed && !isAbsolute:
		c.Add(file, hook.SecretFile, "must be an absolute path")
	}
}
