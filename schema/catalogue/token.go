package catalogue

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/faults"
	"lifthouse/schema/secrets"
)

// Scope is a permission of a token.
type Scope string

// The scopes. Admin implies write, and write implies read. Ingest is bound to one website, and share to one subject;
// neither includes read.
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

	Shared *schema.SubjectIDs `json:"shared,omitempty"` // of a share link; nil: another token
	// ReadoutID is that of the readout that a share link shows, which has no subject. Empty: it shows a subject.
	ReadoutID string  `json:"readoutId,omitempty"`
	Sender    *Sender `json:"sender,omitempty"` // of the key of a source; nil: another token
}

// Sender says how requests to the address of a source are read. Its key is a token, and its name that of the token.
type Sender struct {
	Mapping   string `yaml:"mapping" json:"mapping"`               // name of a shipped mapping, or YAML
	ViewsOnly bool   `yaml:"viewsOnly" json:"viewsOnly,omitempty"` // goals are rejected
	// the secret of signatures, or a file with it, which only the command line may name; neither: not signed
	Secret     *string `yaml:"secret" json:"secret,omitempty"`
	SecretFile string  `yaml:"secretFile" json:"secretFile,omitempty"`
	Rate       *int    `yaml:"rate" json:"rate,omitempty"` // events per second; 0: no limit
}

// IsSigned reports whether requests must be signed.
func (s *Sender) IsSigned() bool { return s.Secret != nil || s.SecretFile != "" }

// ReadSecret returns the secret of signatures.
func (s *Sender) ReadSecret(folder *secrets.Folder) ([]byte, error) {
	if s.Secret != nil {
		return []byte(*s.Secret), nil
	}
	return folder.ReadSecret(s.SecretFile)
}

// DefaultRate is the default number of events per second that a source accepts: twenty times those of a busy shop.
const DefaultRate = 2000

// HasScope reports whether the token has the scope.
func (t *Token) HasScope(scope Scope) bool {
	return slices.ContainsFunc(t.Scopes, func(has Scope) bool {
		return has == scope || slices.Contains(impliedScopes[has], scope)
	})
}

// SetLifetime sets the time at which a new token expires. 0: never.
func (t *Token) SetLifetime(lifetime time.Duration) {
	t.ExpiresAt = nil
	if lifetime > 0 {
		at := time.Now().UTC().Add(lifetime).Truncate(time.Second)
		t.ExpiresAt = &at
	}
}

// tokenPrefix lets secret scanners recognize tokens.
const tokenPrefix = "lh_"

// likeToken matches a token, or the beginning of a token.
var likeToken = regexp.MustCompile(tokenPrefix + `[A-Za-z0-9_-]{16,}`)

// RedactTokens replaces tokens in a text, so that they do not appear in responses and logs.
func RedactTokens(text string) string {
	if !strings.Contains(text, tokenPrefix) {
		return text
	}
	return likeToken.ReplaceAllString(text, tokenPrefix+"…")
}

// The maximum number of valid tokens of an account, and the maximum size of the mapping of a source in bytes: every
// change reads all tokens of the store.
const (
	maxTokens  = 1000
	maxMapping = 16 << 10
)

// CreateToken creates a token and returns its secret, which has 256 random bits and is not stored. If fields of the
// token are invalid, the error is a faults.List.
func (c *Catalogue) CreateToken(ctx context.Context, token Token) (string, Token, error) {
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never fails
	secret := tokenPrefix + base64.RawURLEncoding.EncodeToString(random)
	token.Digest = DigestOf(secret)
	token.CreatedAt = time.Now().UTC().Truncate(time.Millisecond)
	body, err := encodeJSON(token)
	if err != nil {
		return "", Token{}, err
	}
	_, err = c.changeRows(ctx, nil, func(current []row, known *Snapshot) ([]row, error) {
		if err := token.validateFor(known.AccountResources(token.AccountID)); err != nil {
			return nil, err
		}
		live := 0
		for _, t := range known.AccountTokens(token.AccountID) {
			if t.ExpiresAt == nil || t.ExpiresAt.After(token.CreatedAt) {
				live++
			}
		}
		if live >= maxTokens {
			var wrong faults.Collector
			wrong.Add("accountId", token.AccountID,
				fmt.Sprintf("has %d tokens and share links that are valid: revoke some", live))
			return nil, wrong.List
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
	if t.Sender != nil {
		c.checkSender(t)
	}
	if t.Shared != nil {
		c.checkShared(t, owned)
	} else {
		c.checkScopes(t, owned)
	}
	return c.List.Err()
}

// checkSender checks the token of a source of events.
func (c *checker) checkSender(t *Token) {
	c.AddIf(len(t.Scopes) != 1 || t.Scopes[0] != ScopeIngest, "sender", "", "is only allowed with the scope ingest")
	c.AddIf(t.Name == "", "name", "", "must be given: it is the name of the source")
	c.AddIf(len(t.Sender.Mapping) > maxMapping, "sender.mapping", faults.Clip(t.Sender.Mapping, 64),
		fmt.Sprintf("must have at most %d bytes, has %d", maxMapping, len(t.Sender.Mapping)))
	if r := t.Sender.Rate; r != nil {
		c.checkRange("sender.rate", float64(*r), 0, 1_000_000)
	}
	if secret := t.Sender.Secret; secret != nil {
		fault := secrets.Fault(*secret)
		c.AddIf(fault != "", "sender.secret", nil, fault)
		c.AddIf(t.Sender.SecretFile != "",
			"sender.secretFile", t.Sender.SecretFile, "must not be given with secret")
	}
}

// checkShared checks the token of a share link, which shows one subject and expires.
func (c *checker) checkShared(t *Token, owned *AccountResources) {
	c.AddIf(t.ExpiresAt == nil || t.ExpiresAt.After(t.CreatedAt.Add(MaxShareLifetime)),
		"expires", "", fmt.Sprintf("must be at most %dd", MaxShareLifetime/(24*time.Hour)))
	if t.ReadoutID != "" {
		c.AddIf(*t.Shared != (schema.SubjectIDs{}), "readoutId", t.ReadoutID,
			"must be alone: a link shows a readout, or a campaign, a widget or an experiment")
		return
	}
	kind, _, _ := strings.Cut(t.Shared.Arguments(), " ")
	view := owned.SharedView(t.Shared)
	isMixed := t.Shared.CampaignID != 0 && t.Shared.ExperimentID != 0
	if len(view.Campaigns)+len(view.Widgets) != 1 || isMixed {
		c.Add(kind+"Id", t.Shared.Arguments(),
			fmt.Sprintf("must name one campaign, one widget, or one experiment of a widget, of account %d",
				t.AccountID))
	}
}

// checkScopes checks the scopes of a token, and whether they fit its website.
func (c *checker) checkScopes(t *Token, owned *AccountResources) {
	c.AddIf(len(t.Scopes) == 0, "scopes", "", "must have at least one of "+strings.Join(Scopes, ", "))
	c.AddIf(len(t.Scopes) > len(Scopes), "scopes", len(t.Scopes), fmt.Sprintf("must be at most %d", len(Scopes)))
	for i, scope := range t.Scopes[:min(len(t.Scopes), len(Scopes))] {
		at := fmt.Sprintf("scopes[%d]", i)
		c.oneOf(at, string(scope), Scopes)
		c.AddIf(slices.Index(t.Scopes, scope) < i, at, scope, "is not unique")
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
}

// RevokeToken revokes a token. It returns false if the account has no such token.
func (c *Catalogue) RevokeToken(ctx context.Context, account, id int64) (bool, error) {
	revoked := false
	_, err := c.changeRows(ctx, nil, func(current []row, _ *Snapshot) ([]row, error) {
		at := slices.IndexFunc(current, func(r row) bool {
			isAsked := r.AccountID == account && r.Kind == kindToken && r.ID == id
			return isAsked && !r.Archived
		})
		if at < 0 {
			return nil, nil
		}
		revoked = true
		return []row{current[at].archivedVersion()}, nil
	})
	return revoked, err
}

// Lifetimes of share links.
const (
	DefaultShareLifetime = 30 * 24 * time.Hour
	MaxShareLifetime     = 365 * 24 * time.Hour
)

// PagePath returns the path of the page of the subject, with its parameters. Without a subject, it is that of the first
// page.
func PagePath(s *schema.SubjectIDs) string {
	page := url.Values{}
	for name, id := range map[string]int64{
		"campaign": s.CampaignID, "widget": s.WidgetID,
		"experiment": s.ExperimentID,
	} {
		if id != 0 {
			page.Set(name, strconv.FormatInt(id, 10))
		}
	}
	if len(page) == 0 {
		return "/"
	}
	return "/?" + page.Encode()
}

// NewShare returns the token of a new share link, for CreateToken.
func NewShare(account int64, name string, subject schema.SubjectIDs, lifetime time.Duration) Token {
	t := Token{AccountID: account, Name: name, Scopes: []Scope{ScopeShare}, Shared: &subject}
	t.SetLifetime(lifetime)
	return t
}

// SharedView returns the part of the account that a share link shows: the subject, its website and the goals of the
// website. A widget has only the shared experiment.
func (o *AccountResources) SharedView(s *schema.SubjectIDs) *AccountResources {
	view := &AccountResources{
		Account: o.Account, Version: o.Version,
		Websites: map[int64]Website{}, Goals: map[int64]Goal{}, Campaigns: map[int64]LiveCampaign{},
		Widgets: map[int64]LiveWidget{},
	}
	var website int64
	if campaign, known := o.Campaigns[s.CampaignID]; known {
		website, view.Campaigns[campaign.ID] = campaign.WebsiteID, campaign
	}
	if widget, known := o.Widgets[s.WidgetID]; known {
		widget.Experiments = slices.DeleteFunc(slices.Clone(widget.Experiments),
			func(e Experiment) bool { return e.ID != s.ExperimentID })
		if s.ExperimentID == 0 || len(widget.Experiments) > 0 {
			website, view.Widgets[widget.ID] = widget.WebsiteID, widget
		}
	}
	if site, known := o.Websites[website]; known {
		view.Websites[website] = site
	}
	for id, goal := range o.Goals {
		if goal.WebsiteID == website {
			view.Goals[id] = goal
		}
	}
	return view
}

// SignInLink returns the address of the dashboard with a token, which signs in. base is the address of the dashboard,
// and website the one that opens; 0: the first page. The token is in the fragment, which browsers do not send to
// servers, and which the page takes out of the address.
func SignInLink(base string, website int64, secret string) string {
	path := "/"
	if website != 0 {
		path = fmt.Sprint("/?websiteId=", website)
	}
	return base + path + "#" + url.Values{"token": {secret}}.Encode()
}

// ReadoutLink returns the address of the page of a readout that a share link shows. base is the address of the
// dashboard.
func ReadoutLink(base, id, secret string) string {
	return base + "/readouts/" + id + "#" + url.Values{"share": {secret}}.Encode()
}

// NewReadoutShare is like NewShare, for a link that shows a readout only.
func NewReadoutShare(account int64, name, readout string, lifetime time.Duration) Token {
	t := NewShare(account, name, schema.SubjectIDs{}, lifetime)
	t.ReadoutID = readout
	return t
}

// ShareLink returns the address of the page that a share link shows. base is the address of the dashboard. The token is
// in the fragment, which browsers do not send to servers. The page cannot read the website, so the fragment also has
// its currency and its time zone.
func (o *AccountResources) ShareLink(base string, s *schema.SubjectIDs, secret string) string {
	fragment := url.Values{"share": {secret}}
	for _, site := range o.SharedView(s).Websites {
		for name, value := range map[string]string{"currency": site.Currency, "timezone": site.Timezone} {
			if value != "" {
				fragment.Set(name, value)
			}
		}
	}
	return base + PagePath(s) + "#" + fragment.Encode()
}
