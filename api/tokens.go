package api

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"lifthouse/api/results"
	"lifthouse/engine/query"
	"lifthouse/engine/render"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/documents"
	"lifthouse/schema/ingest"

	"github.com/gin-gonic/gin"
)

// token is a token or a share link, which is a token of the scope share.
type token struct {
	ID        int64             `json:"id"`
	Name      string            `json:"name,omitempty"`
	Scopes    []catalogue.Scope `json:"scopes"`
	WebsiteID int64             `json:"websiteId,omitempty"`
	*schema.SubjectIDs
	ReadoutID string     `json:"readoutId,omitempty"` // of a link that shows a readout
	Sender    *sentBy    `json:"sender,omitempty"`
	CreatedAt time.Time  `json:"createdAt"`
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
	Secret    string     `json:"secret,omitempty"` // only of a new token
	URL       string     `json:"url,omitempty"`    // only of a new share link
}

// sentBy is a sender without its secret.
type sentBy struct {
	catalogue.Sender
	Signed bool `json:"signed"` // whether requests must be signed
}

func newToken(t *catalogue.Token) token {
	shown := token{
		ID: t.ID, Name: t.Name, Scopes: t.Scopes, WebsiteID: t.WebsiteID, SubjectIDs: t.Shared,
		ReadoutID: t.ReadoutID,
		CreatedAt: t.CreatedAt, ExpiresAt: t.ExpiresAt,
	}
	if t.Sender != nil {
		shown.Sender = &sentBy{*t.Sender, t.Sender.IsSigned()}
		shown.Sender.Secret = nil
	}
	return shown
}

// listTokens returns the tokens of the account, including its share links.
func (s *API) listTokens(c *gin.Context) (any, error) {
	list := []token{}
	for _, t := range s.Catalogue.Snapshot().AccountTokens(tokenOf(c).AccountID) {
		list = append(list, newToken(&t))
	}
	c.Header("X-Total-Count", strconv.Itoa(len(list)))
	body, err := render.JSON(list)
	return reply{kind: results.JSON, body: body, keep: notKept}, err
}

// createToken creates a token of the account. The response has its secret, which cannot be shown again.
func (s *API) createToken(c *gin.Context) (any, error) {
	var asked struct {
		Name      string            `yaml:"name"`
		Scopes    []catalogue.Scope `yaml:"scopes"`
		WebsiteID *int64            `yaml:"websiteId"`
		Expires   *string           `yaml:"expires"`
		Sender    *catalogue.Sender `yaml:"sender"`
	}
	if err := s.readBodyYAML(c, &asked); err != nil {
		return nil, err
	}
	var fields bodyFields
	if asked.Sender != nil {
		if _, err := ingest.NewIntake(asked.Sender.Mapping, 1, asked.Name, false); err != nil {
			fields.Add("sender.mapping", asked.Sender.Mapping, err.Error())
		}
		fields.AddIf(asked.Sender.SecretFile != "", "sender.secretFile", asked.Sender.SecretFile,
			"must be omitted: only lifthouse source add on the server may name a file; give the secret in secret")
	}
	made := catalogue.Token{
		AccountID: tokenOf(c).AccountID, Name: asked.Name, Scopes: asked.Scopes,
		WebsiteID: fields.optionalID("websiteId", asked.WebsiteID), Sender: asked.Sender,
	}
	lifetime := fields.parseLifetime(asked.Expires, 0)
	if err := fields.List.Err(); err != nil {
		return nil, err
	}
	made.SetLifetime(lifetime)
	return s.storeToken(c, made, func(shown *token, secret string) { shown.Secret = secret })
}

// createShare creates a share link. The response has its address, which cannot be shown again.
func (s *API) createShare(c *gin.Context) (any, error) {
	var asked struct {
		CampaignID   *int64  `yaml:"campaignId"`
		WidgetID     *int64  `yaml:"widgetId"`
		ExperimentID *int64  `yaml:"experimentId"`
		ReadoutID    string  `yaml:"readoutId"`
		Name         string  `yaml:"name"`
		Expires      *string `yaml:"expires"`
	}
	if err := s.readBodyYAML(c, &asked); err != nil {
		return nil, err
	}
	var fields bodyFields
	subject := schema.SubjectIDs{
		CampaignID:   fields.optionalID("campaignId", asked.CampaignID),
		WidgetID:     fields.optionalID("widgetId", asked.WidgetID),
		ExperimentID: fields.optionalID("experimentId", asked.ExperimentID),
	}
	lifetime := fields.parseLifetime(asked.Expires, catalogue.DefaultShareLifetime)
	owned, _ := s.accountResources(c)
	if asked.ReadoutID != "" {
		if err := s.checkSharedReadout(c, &fields, owned.ID, asked.ReadoutID); err != nil {
			return nil, err
		}
	}
	if err := fields.List.Err(); err != nil {
		return nil, err
	}
	made := catalogue.NewShare(owned.ID, asked.Name, subject, lifetime)
	made.ReadoutID = asked.ReadoutID
	return s.storeToken(c, made, func(shown *token, secret string) {
		shown.URL = owned.ShareLink(s.options.PublicURL, made.Shared, secret)
		if made.ReadoutID != "" {
			shown.URL = catalogue.ReadoutLink(s.options.PublicURL, made.ReadoutID, secret)
		}
	})
}

// checkSharedReadout adds a fault if the account has no such readout, or if it was withdrawn.
func (s *API) checkSharedReadout(c *gin.Context, fields *bodyFields, account int64, id string) error {
	const name = "readoutId"
	if !documents.IsID(id) {
		fields.Add(name, id, "must be the id of a readout, which has 32 hexadecimal digits")
		return nil
	}
	ctx := c.Request.Context()
	found, err := s.Documents.FindDocument(ctx, account, 0, documents.Readout, id)
	switch {
	case err != nil:
		return source.StoreFailure(ctx, err)
	case found == nil:
		fields.Add(name, id, fmt.Sprintf("account %d has no such readout", account))
	case found.WithdrawnAt != nil:
		fields.Add(name, id, "was withdrawn")
	}
	return nil
}

// storeToken creates a token and returns it, with its secret as show sets it.
func (s *API) storeToken(c *gin.Context, made catalogue.Token, show func(shown *token, secret string)) (any, error) {
	var secret string
	ctx := byToken(c)
	err := within(ctx, func() (err error) {
		secret, made, err = s.Catalogue.CreateToken(ctx, made)
		return err
	})
	if err != nil { // the token may still be stored
		return nil, changeFailure(c, err, "list the tokens to see whether there is one to revoke")
	}
	shown := newToken(&made)
	show(&shown, secret)
	c.Header("Location", fmt.Sprint("/tokens/", made.ID))
	body, err := render.JSON(shown)
	return reply{status: http.StatusCreated, kind: results.JSON, body: body, keep: notKept}, err
}

// revokeToken revokes a token of the account, or a share link.
func (s *API) revokeToken(c *gin.Context) (any, error) {
	id, err := pathID(c, pathIDName, query.ReadParameters(c.Request.URL.RawQuery).Err())
	if err != nil {
		return nil, err
	}
	account := tokenOf(c).AccountID
	revoked := false
	ctx := byToken(c)
	err = within(ctx, func() (err error) {
		revoked, err = s.Catalogue.RevokeToken(ctx, account, id)
		return err
	})
	switch {
	case err != nil:
		return nil, changeFailure(c, err, "repeat the request")
	case !revoked:
		return nil, &query.NotFoundError{Kind: "token", ID: id}
	}
	return reply{status: http.StatusNoContent, keep: notKept}, nil
}
