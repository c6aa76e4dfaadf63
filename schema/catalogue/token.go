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

// The scopes. Write implies read. Ingest is bound to one website and does not
// include read.
const (
	ScopeRead   Scope = "read"
	ScopeWrite  Scope = "write"
	ScopeIngest Scope = "ingest"
)

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
}

// HasScope reports whether the token has the scope.
func (t *Token) HasScope(scope Scope) bool {
	return slices.Contains(t.Scopes, scope) || scope == ScopeRead && slices.Contains(t.Scopes, ScopeWrite)
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
// and is not stored. The error states which field of the token is invalid.
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
		if err := checkToken(current, token); err != nil {
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

func checkToken(rows []row, token Token) error {
	if len(token.Scopes) == 0 {
		return fmt.Errorf("token: must have at least one scope of %s, %s, %s", ScopeRead, ScopeWrite, ScopeIngest)
	}
	for _, scope := range token.Scopes {
		if scope != ScopeRead && scope != ScopeWrite && scope != ScopeIngest {
			return fmt.Errorf("token: scope %q: must be %s, %s or %s", scope, ScopeRead, ScopeWrite, ScopeIngest)
		}
	}
	ingests := slices.Contains(token.Scopes, ScopeIngest)
	if ingests && (len(token.Scopes) > 1 || token.WebsiteID == 0) {
		return fmt.Errorf("token: scope %s must be the only scope and requires a website", ScopeIngest)
	}
	account, website := false, token.WebsiteID == 0
	for _, r := range rows {
		if r.AccountID == token.AccountID && !r.Archived {
			account = account || r.Kind == kindAccount
			website = website || r.Kind == kindWebsite && r.ID == token.WebsiteID
		}
	}
	if !account {
		return fmt.Errorf("token: account %d does not exist: apply a catalogue with it first", token.AccountID)
	}
	if !website {
		return fmt.Errorf("token: account %d has no website %d", token.AccountID, token.WebsiteID)
	}
	return nil
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
