package catalogue

import (
	"cmp"
	"context"
	_ "embed" // the statement
	"encoding/json"
	"fmt"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// author is the context key of the author.
type author struct{}

// WithAuthor returns a context in which changes are attributed to an author: a token, or a command and its user.
func WithAuthor(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, author{}, who)
}

// AuthorOf returns the author of changes in a context.
func AuthorOf(ctx context.Context) string {
	who, _ := ctx.Value(author{}).(string)
	return who
}

// AuditEntry is a stored change of the catalogue.
type AuditEntry struct {
	AccountID int64     `json:"accountId"`
	At        time.Time `json:"at"`
	By        string    `json:"by"`
	// account, token, website, goal, target, campaign, widget or webhook; facts, with the id of a website; rates, with
	// the id of the account
	Kind string `json:"kind"`
	ID   int64  `json:"id"`
	// created, changed, archived or revoked; for a state, active or inactive; for facts, loss accepted, visitors
	// forgotten, events deleted, facts rebuilt or amounts converted again; for rates, imported
	Change  string          `json:"change"`
	Version uint64          `json:"version"`
	After   json.RawMessage `json:"after"` // the definition or the state
	IsState bool            `json:"-"`
}

var (
	//go:embed accepted_loss.sql
	insertAcceptedLoss string
	//go:embed facts_change.sql
	insertFactsChange string
	//go:embed rates.sql
	insertRates string
	//go:embed facts_changes.sql
	factsChangesQuery string
	//go:embed audit.sql
	auditQuery string
)

// RecordAcceptedLoss adds to the audit log that a person accepts the loss of stored events of visitors of a website.
func (c *Catalogue) RecordAcceptedLoss(ctx context.Context, website int64, visitors int) error {
	err := c.conn.Exec(ctx, insertAcceptedLoss,
		clickhouse.Named("account", c.Snapshot().ownerOf(website)), clickhouse.Named("website", website),
		clickhouse.Named("visitors", visitors), clickhouse.Named("author", AuthorOf(ctx)))
	return schema.WrapError(err, "write the audit log")
}

// Changes of facts without new events, as the audit log has them.
const (
	VisitorsForgotten = "visitors forgotten"
	EventsDeleted     = "events deleted"
	FactsRebuilt      = "facts rebuilt"
	AmountsConverted  = "amounts converted again"
)

// RecordFactsChange adds to the audit log that the facts of websites changed without new events. Clients that follow
// results learn of it from there.
func (c *Catalogue) RecordFactsChange(ctx context.Context, what string, websites ...int64) error {
	for _, website := range websites {
		err := c.conn.Exec(ctx, insertFactsChange,
			clickhouse.Named("account", c.Snapshot().ownerOf(website)), clickhouse.Named("website", website),
			clickhouse.Named("change", what), clickhouse.Named("author", AuthorOf(ctx)))
		if err != nil {
			return schema.WrapError(err, "write the audit log")
		}
	}
	return nil
}

// RecordRates adds to the audit log that rates of an account were imported: of which file, how many are new, and how
// many are others than before.
func (c *Catalogue) RecordRates(ctx context.Context, account int64, source string, added, changed int) error {
	body, err := json.Marshal(map[string]any{
		"source": source, "new": added, "changed": changed, "at": time.Now().UTC(), // each import is a change
	})
	if err == nil {
		err = c.conn.Exec(ctx, insertRates, clickhouse.Named("account", account),
			clickhouse.Named("author", AuthorOf(ctx)), clickhouse.Named("body", string(body)))
	}
	return schema.WrapError(err, "write the audit log")
}

// ReadFactsChanges returns when the facts of each website of an account last changed without new events.
func (c *Catalogue) ReadFactsChanges(ctx context.Context, account int64) (map[int64]time.Time, error) {
	changed := map[int64]time.Time{}
	err := schema.EachRow(ctx, c.conn, factsChangesQuery, func(row driver.Rows) error {
		var website int64
		var at time.Time
		err := row.Scan(&website, &at)
		changed[website] = at.UTC()
		return err
	}, clickhouse.Named("account", account))
	return changed, schema.WrapError(err, "read the audit log")
}

// ReadAuditLog returns the changes since a time, of one account, or of all accounts if account is 0. It returns at most
// limit changes, the latest first. If several servers made the same change at the same time, it returns only the first.
func (c *Catalogue) ReadAuditLog(ctx context.Context, account int64, since time.Time, limit int) ([]AuditEntry, error) {
	all := []AuditEntry{}
	err := schema.EachRow(ctx, c.conn, auditQuery, func(row driver.Rows) error {
		var a AuditEntry
		var of, body string
		var archived, switched bool
		err := row.Scan(&a.AccountID, &a.At, &a.By, &a.Kind, &a.ID, &of, &a.Version, &archived, &body, &switched)
		if err != nil {
			return err
		}
		a.At = a.At.UTC()
		a.After = json.RawMessage(body)
		a.IsState = part(of) == partState
		if part(of) == partDefinition {
			a.After, err = hideSecrets(kind(a.Kind), body)
			if err != nil {
				return fmt.Errorf("the definition of %s %d: %w", a.Kind, a.ID, err)
			}
		}
		a.Change, err = changeOf(&a, part(of), archived, switched)
		all = append(all, a)
		return err
	}, clickhouse.Named("account", account), clickhouse.DateNamed("since", since, clickhouse.MilliSeconds),
		clickhouse.Named("limit", uint32(limit))) //nolint:gosec // bounded by the flag
	return all, schema.WrapError(err, "read the audit log")
}

// hiddenSecret is shown instead of a secret.
const hiddenSecret = "…"

// hideText returns what is shown instead of a text of JSON.
func hideText(text JSONText) JSONText {
	if text == "" {
		return ""
	}
	return `"` + hiddenSecret + `"`
}

// hideSecrets returns a definition without its secret.
func hideSecrets(k kind, body string) (json.RawMessage, error) {
	switch k { //nolint:exhaustive // others have no secrets
	case kindWebhook:
		var hook Webhook
		err := json.Unmarshal([]byte(body), &hook)
		if err != nil || hook.Secret == "" {
			return json.RawMessage(body), err
		}
		hook.Secret = hiddenSecret
		return json.Marshal(hook)
	case kindToken:
		var token Token
		err := json.Unmarshal([]byte(body), &token)
		if err != nil || token.Sender == nil || token.Sender.Secret == nil {
			return json.RawMessage(body), err
		}
		token.Sender.Secret = new(hiddenSecret)
		return json.Marshal(token)
	}
	return json.RawMessage(body), nil
}

// changeOf returns the value of AuditEntry.Change. A state that changed without a start or a stop has other shares or
// another plan.
func changeOf(a *AuditEntry, changed part, archived, switched bool) (string, error) {
	switch {
	case changed == partState && switched:
		var state State
		if err := json.Unmarshal(a.After, &state); err != nil {
			return "", fmt.Errorf("the state of %s %d: %w", a.Kind, a.ID, err)
		}
		if state.Active {
			return "active", nil
		}
		return "inactive", nil
	case a.Kind == "rates":
		return "imported", nil
	case a.Kind == "facts":
		var facts struct{ Change string }
		err := json.Unmarshal(a.After, &facts)
		return cmp.Or(facts.Change, "loss accepted"), schema.WrapError(err, "read the audit log")
	case archived && kind(a.Kind) == kindToken:
		return "revoked", nil
	case archived:
		return "archived", nil
	case changed == partDefinition && a.Version == 1:
		return "created", nil
	}
	return "changed", nil
}
