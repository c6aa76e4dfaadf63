package catalogue

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Scope is a permission of a token.
type Scope string

// The scopes. Admin implies write, and write implies read. Ingest is bound to one website,
// and share to one subject; neither includes read.
const (
	ScopeRead   Scope = "read"
	ScopeWrite  Scope = "write"
	ScopeAdmin  Scope = "admin"
	ScopeIngest Scope = "ingest"
	ScopeShare  Scope = "share"
)

// Scopes are the scopes that a new token can have. Share links have ScopeShare.
var Scopes = []string{string(ScopeRead), string(ScopeWrite), string(ScopeAdmin), string(ScopeIngest)}

// impliedScopes are the scopes that a scope implies.
var impliedScopes = map[Scope][]Scope{ScopeWrite: {ScopeRead}, ScopeAdmin: {ScopeRead, ScopeWrite}}

// Digest is the SHA-256 digest of a token. The token itself is not stored.
type Digest [sha256.Size]byte

// MarshalText returns the digest in hexadecimal.
func (d Digest) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(d[:])), nil }

// UnmarshalText parses the output of MarshalText.
func (d *Digest) UnmarshalText(text []byte) error {
	n, err := hex.Decode(d[:], text)
	if err == nil && n != len(d) {
		err = fmt.Errorf("invalid token digest: must have %d bytes, has %d", len(d), n)
	}
	return err
}

// DigestOf returns the digest of a token.
func DigestOf(secret string) Digest { return sha256.Sum256([]byte(secret)) }

// Token gives access to one account.
type Token struct {
	ID        int64      `json:"-"`
	AccountID int64      `json:"-"`
	Digest    Digest     `json:"sha256"`
	Name      string     `json:"name,omitempty"`
	Scopes    []Scope    `json:"scopes"`
	WebsiteID int64      `json:"websiteId,omitempty"` // 0: every website of the account
	CreatedAt time.Time  `json:"createdAt"`
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`

	Shared *PageSubject `json:"shared,omitempty"` // of a share link; nil: another token
}

// HasScope reports whether the token has the scope.
func (t *Token) HasScope(scope Scope) bool {
	return slices.ContainsFunc(t.Scopes, func(has Scope) bool { return has == scope || slices.Contains(impliedScopes[has], scope) })
}

// SetLifetime sets the time at which a new token expires. 0: never.
func (t *Token) SetLifetime(lifetime time.Duration) {
	if t.ExpiresAt = nil; lifetime > 0 {
		at := time.Now().UTC().Add(lifetime).Truncate(time.Second)
		t.ExpiresAt = &at
	}
}

// tokenPrefix lets secret scanners recognize tokens.
const tokenPrefix = "lh_"

// likeToken matches a token, or the beginning of a token.
var likeToken = regexp.MustCompile(tokenPrefix + `[A-Za-z0-9_-]{16,}`)

// RedactTokens replaces tokens in a text, so that they do not appear in responses
// and logs.
func RedactTokens(text string) string {
	if !strings.Contains(text, tokenPrefix) {
		return text
	}
	return likeToken.ReplaceAllString(text, tokenPrefix+"…")
}

// CreateToken creates a token and returns its secret, which has 256 random bits
// and is not stored. If fields of the token are invalid, the error is a faults.List.
func (c *Catalogue) CreateToken(ctx context.Context, token Token) (string, Token, error) {
	random := make([]byte, 32)
	if _, err := rand.Read(random); err != nil {
		return "", Token{}, fmt.Errorf("create token: %w", err)
	}
	secret := tokenPrefix + base64.RawURLEncoding.EncodeToString(random)
	token.Digest = DigestOf(secret)
	token.CreatedAt = time.Now().UTC().Truncate(time.Millisecond)
	body, err := encodeJSON(token)
	if err != nil {
		return "", Token{}, err
	}
	err = c.changeRows(ctx, func(current []row) ([]row, error) {
		known, err := newSnapshot(current)
		if err != nil {
			return nil, err
		}
		if err := token.validateFor(known.AccountResources(token.AccountID)); err != nil {
			return nil, err
		}
		token.ID = 1
		for _, r := range current {
			if r.Body == body { // this call has inserted the token before a conflicting change
				token.ID = r.ID
				return nil, nil
			}
			if r.Kind == kindToken && r.AccountID == token.AccountID {
				token.ID = max(token.ID, r.ID+1)
			}
		}
		return []row{{key: key{token.AccountID, kindToken, token.ID, partDefinition}, Version: 1, Body: body}}, nil
	})
	return secret, token, err
}

// validateFor returns the faults of a new token of the account.
func (t *Token) validateFor(owned *AccountResources) error {
	c := checker{}
	if owned.ID == 0 {
		c.Add("accountId", t.AccountID, "the account does not exist: apply a catalogue with it first")
		return c.List.Err()
	}
	c.checkText("name", t.Name, 0, 255)
	if t.Shared != nil {
		c.checkShare(t, owned)
		return c.List.Err()
	}
	if len(t.Scopes) == 0 {
		c.Add("scopes", "", "must have at least one of "+strings.Join(Scopes, ", "))
	}
	for i, scope := range t.Scopes {
		c.oneOf(fmt.Sprintf("scopes[%d]", i), string(scope), Scopes)
	}
	_, known := owned.Websites[t.WebsiteID]
	switch ingests := slices.Contains(t.Scopes, ScopeIngest); {
	case t.WebsiteID != 0 && !known:
		c.Add("websiteId", t.WebsiteID, fmt.Sprintf("account %d has no such website", t.AccountID))
	case ingests && (len(t.Scopes) > 1 || t.WebsiteID == 0):
		c.Add("scopes", ScopeIngest, "must be the only scope, and requires a website")
	case t.WebsiteID != 0 && slices.Contains(t.Scopes, ScopeAdmin):
		c.Add("websiteId", t.WebsiteID, "must be omitted: the scope admin is for the whole account")
	}
	return c.List.Err()
}

// RevokeToken revokes a token. It returns false if the account has no such token.
func (c *Catalogue) RevokeToken(ctx context.Context, account, id int64) (bool, error) {
	revoked := false
	err := c.changeRows(ctx, func(current []row) ([]row, error) {
		at := slices.IndexFunc(current, func(r row) bool {
			return r.AccountID == account && r.Kind == kindToken && r.ID == id && !r.Archived
		})
		if at < 0 {
			return nil, nil
		}
		revoked = true
		return []row{current[at].archivedVersion()}, nil
	})
	return revoked, err
}
