package api

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"lifthouse/api/results"
	"lifthouse/engine/query"
	"lifthouse/engine/render"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"

	"github.com/gin-gonic/gin"
)

// token is a token or a share link, which is a token of the scope share.
type token struct {
	ID        int64             `json:"id"`
	Name      string            `json:"name,omitempty"`
	Scopes    []catalogue.Scope `json:"scopes"`
	WebsiteID int64             `json:"websiteId,omitempty"`
	*catalogue.PageSubject
	CreatedAt time.Time  `json:"createdAt"`
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
	Secret    string     `json:"secret,omitempty"` // only of a new token
	URL       string     `json:"url,omitempty"`    // only of a new share link
}

func newToken(t *catalogue.Token) token {
	return token{ID: t.ID, Name: t.Name, Scopes: t.Scopes, WebsiteID: t.WebsiteID, PageSubject: t.Shared, CreatedAt: t.CreatedAt, ExpiresAt: t.ExpiresAt}
}

// listTokens returns the tokens of the account, including its share links.
func (s *server) listTokens(c *gin.Context) (any, error) {
	if err := query.ReadParameters(c.Request.URL.RawQuery).Err(); err != nil {
		return nil, err
	}
	list := []token{}
	for _, t := range s.Catalogue.Snapshot().AccountTokens(tokenOf(c).AccountID) {
		list = append(list, newToken(&t))
	}
	c.Header("X-Total-Count", strconv.Itoa(len(list)))
	body, err := render.JSON(list)
	return reply{kind: results.JSON, body: body, keep: notKept}, err
}

// createToken creates a token of the account. The response has its secret, which cannot be
// shown again.
func (s *server) createToken(c *gin.Context) (any, error) {
	var asked struct {
		Name      string            `yaml:"name"`
		Scopes    []catalogue.Scope `yaml:"scopes"`
		WebsiteID *int64            `yaml:"websiteId"`
		Expires   *string           `yaml:"expires"`
	}
	if err := s.readRequest(c, &asked); err != nil {
		return nil, err
	}
	var fields bodyFields
	made := catalogue.Token{
		AccountID: tokenOf(c).AccountID, Name: asked.Name, Scopes: asked.Scopes,
		WebsiteID: fields.id("websiteId", asked.WebsiteID),
	}
	lifetime := fields.lifetime(asked.Expires, 0)
	if err := fields.List.Err(); err != nil {
		return nil, err
	}
	made.SetLifetime(lifetime)
	return s.storeToken(c, made, func(shown *token, secret string) { shown.Secret = secret })
}

// createShare creates a share link. The response has its address, which cannot be shown
// again.
func (s *server) createShare(c *gin.Context) (any, error) {
	var asked struct {
		CampaignID   *int64  `yaml:"campaignId"`
		WidgetID     *int64  `yaml:"widgetId"`
		ExperimentID *int64  `yaml:"experimentId"`
		Name         string  `yaml:"name"`
		Expires      *string `yaml:"expires"`
	}
	if err := s.readRequest(c, &asked); err != nil {
		return nil, err
	}
	var fields bodyFields
	subject := catalogue.PageSubject{
		CampaignID: fields.id("campaignId", asked.CampaignID), WidgetID: fields.id("widgetId", asked.WidgetID),
		ExperimentID: fields.id("experimentId", asked.ExperimentID),
	}
	lifetime := fields.lifetime(asked.Expires, catalogue.DefaultShareLifetime)
	if err := fields.List.Err(); err != nil {
		return nil, err
	}
	owned, _ := s.accountResources(c)
	made := catalogue.NewShare(owned.ID, asked.Name, subject, lifetime)
	return s.storeToken(c, made, func(shown *token, secret string) {
		shown.URL = owned.ShareLink(s.options.PublicURL, made.Shared, secret)
	})
}

// storeToken creates a token and returns it, with its secret as show sets it.
func (s *server) storeToken(c *gin.Context, made catalogue.Token, show func(shown *token, secret string)) (any, error) {
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
func (s *server) revokeToken(c *gin.Context) (any, error) {
	id, err := pathID(c, pathIDName, query.ReadParameters(c.Request.URL.RawQuery).Err())
	if err != nil {
		return nil, err
	}
	account, revoked, ctx := tokenOf(c).AccountID, false, byToken(c)
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

// maxRequest is the maximum size of a small body in bytes.
const maxRequest = 64 << 10

// readRequest decodes the body into asked.
func (s *server) readRequest(c *gin.Context, asked any) error {
	if err := query.ReadParameters(c.Request.URL.RawQuery).Err(); err != nil {
		return err
	}
	return s.useYAML(c, maxRequest, func(text io.Reader) error {
		if err := catalogue.DecodeYAML(text, asked); err != nil {
			return bodyProblem(err)
		}
		return nil
	})
}

// bodyFields collects the faults of optional fields.
type bodyFields struct{ faults.Collector }

// id returns an id, or 0 if it is omitted.
func (f *bodyFields) id(name string, given *int64) int64 {
	if given == nil {
		return 0
	}
	if *given < 1 {
		f.Add(name, *given, "must be an id, which is 1 or more, or be omitted")
	}
	return *given
}

// lifetime returns the lifetime in the field expires, or the default if it is omitted.
func (f *bodyFields) lifetime(given *string, otherwise time.Duration) time.Duration {
	if given == nil {
		return otherwise
	}
	lifetime, err := schema.ParseDuration(*given)
	if err != nil || lifetime < time.Second {
		f.Add("expires", *given, "must be a duration of a second or more, such as 30d or 12h, or be omitted")
	}
	return lifetime
}
