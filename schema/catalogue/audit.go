package catalogue

import (
	"context"
	_ "embed" // the statement
	"encoding/json"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// author is the key of who changes something.
type author struct{}

// By has changes under the context noted as made by who: a token, or a command
// and its user.
func By(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, author{}, who)
}

func authorOf(ctx context.Context) string {
	who, _ := ctx.Value(author{}).(string)
	return who
}

// Audited is a change that was made.
type Audited struct {
	AccountID int64           `json:"accountId"`
	At        time.Time       `json:"at"`
	By        string          `json:"by"`
	Kind      string          `json:"kind"` // account, token, website, goal, target, campaign or widget
	ID        int64           `json:"id"`
	Change    string          `json:"change"` // created, changed, archived or revoked; of a state, active or inactive
	Version   uint64          `json:"version"`
	After     json.RawMessage `json:"after"` // the definition or the state
}

//go:embed audit.sql
var auditQuery string

// Audit returns the changes since a time, the last ones first, at most so many;
// of account 0 those of all accounts.
func (c *Catalogue) Audit(ctx context.Context, account int64, since time.Time, most int) ([]Audited, error) {
	rows, err := c.conn.Query(ctx, auditQuery, clickhouse.Named("account", account), clickhouse.DateNamed("since", since, clickhouse.MilliSeconds),
		clickhouse.Named("most", uint32(most))) //nolint:gosec // bounded by the flag
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	defer func() { _ = rows.Close() }()
	all := []Audited{}
	for rows.Next() {
		var a Audited
		var of, body string
		var archived bool
		if err := rows.Scan(&a.AccountID, &a.At, &a.By, &a.Kind, &a.ID, &of, &a.Version, &archived, &body); err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		a.At, a.After = a.At.UTC(), json.RawMessage(body)
		if a.Change, err = changeOf(&a, part(of), archived); err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, rows.Err()
}

// changeOf says in a word what a change was.
func changeOf(a *Audited, of part, archived bool) (string, error) {
	switch {
	case of == partState:
		var state State
		if err := json.Unmarshal(a.After, &state); err != nil {
			return "", fmt.Errorf("audit log: the state of %s %d: %w", a.Kind, a.ID, err)
		}
		if state.Active {
			return "active", nil
		}
		return "inactive", nil
	case archived && kind(a.Kind) == kindToken:
		return "revoked", nil
	case archived:
		return "archived", nil
	case a.Version == 1:
		return "created", nil
	}
	return "changed", nil
}
