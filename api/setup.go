package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"lifthouse/api/results"
	"lifthouse/engine"
	"lifthouse/engine/query"
	"lifthouse/engine/render"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"
	"lifthouse/schema/ingest"

	"github.com/gin-gonic/gin"
)

// Setup over HTTP: the catalogue, the tokens and the share links of the token's account, as with the commands export,
// apply, token and share.

// addSetup adds the operations that need the scope admin.
func (s *API) addSetup(router *gin.Engine) {
	admin := router.Group("", s.requireScope(catalogue.ScopeAdmin))
	limited := admin.Group("", s.limitTime)
	change := func(handle handler) gin.HandlerFunc { return respondWith(admitTo(s.setups, handle)) }
	getRoutes(admin)("/catalogue", withoutParameters(s.getCatalogue), yamlType, results.JSON)
	admin.PUT("/catalogue", change(s.putCatalogue))
	limited.POST("/declarations", change(s.declareCampaign))
	getRoutes(limited)("/tokens", withoutParameters(s.listTokens))
	limited.POST("/tokens", change(withoutParameters(s.createToken)))
	limited.DELETE("/tokens/:id", change(s.revokeToken))
	limited.POST("/shares", change(withoutParameters(s.createShare)))
}

const yamlType = "application/yaml"

// catalogueTag returns the entity tag of a version of the account's catalogue. A strong tag names one representation.
func catalogueTag(version uint64, kind string) string {
	if kind == results.JSON {
		return fmt.Sprintf(`"%016x-json"`, version)
	}
	return fmt.Sprintf(`"%016x"`, version)
}

// getCatalogue returns the catalogue of the token's account.
func (s *API) getCatalogue(c *gin.Context) (any, error) {
	owned, _ := s.accountResources(c)
	kind, write := c.GetString(typeKey), owned.CatalogueFile().WriteYAML
	if kind == results.JSON {
		write = owned.CatalogueFile().WriteJSON
	}
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return nil, err
	}
	return reply{kind: kind, body: text.Bytes(), keep: revalidated, tag: catalogueTag(owned.Version, kind)}, nil
}

// putCatalogue changes the account's catalogue to what the body declares.
func (s *API) putCatalogue(c *gin.Context) (any, error) {
	p := query.ReadParameters(c.Request.URL.RawQuery, "dryRun", "prune")
	booleans := []string{"true", "false"}
	dryRun, prune := p.OneOf("dryRun", booleans) == "true", p.OneOf("prune", booleans) == "true"
	if err := p.Err(); err != nil {
		return nil, err
	}
	unconditional := strings.Join(c.Request.Header.Values("If-Match"), ",") == ""
	if unconditional && !dryRun {
		return nil, newRefusal(http.StatusPreconditionRequired, "precondition_required",
			"send the header If-Match with the ETag of GET /catalogue, which protects the changes of others, or "+
				"If-Match: * to overwrite them")
	}
	replaces := func(version uint64) bool {
		return unconditional || listsTag(c.Request, "If-Match", catalogueTag(version, yamlType),
			catalogueTag(version, results.JSON))
	}
	var answered reply
	// 500 campaigns with 20 variations have a megabyte. Reading it allocates 70 MB, and at most 1.2 GB if all of it are
	// keys or brackets.
	err := s.useYAML(c, 1<<20, func(text io.Reader) (err error) {
		if err := s.Catalogue.RefreshSnapshot(c.Request.Context()); err != nil { // another server may have changed it
			return changeFailure(c, err, "repeat the request")
		}
		if owned, _ := s.accountResources(c); !replaces(owned.Version) {
			return versionChanged() // without parsing the body, so the retries of many clients are cheap
		}
		file, err := catalogue.ReadYAML(text)
		// ApplyToVersion returns the faults with those that it finds.
		if _, hasFaults := errors.AsType[faults.List](err); err != nil && !hasFaults {
			return bodyProblem(err)
		}
		file.AccountID, file.Replaces, file.Prune = tokenOf(c).AccountID, replaces, prune
		file.IsRemote = true
		answered, err = s.applyCatalogue(c, file, dryRun)
		return err
	})
	return answered, err
}

// applyCatalogue changes the account's catalogue and returns the changes.
func (s *API) applyCatalogue(c *gin.Context, file catalogue.File, dryRun bool) (reply, error) {
	var changes []catalogue.Change
	var version uint64
	// starts after the body was received from the client
	ctx, cancel := results.WithDeadline(byToken(c), s.options.Timeout)
	defer cancel()
	err := within(ctx, func() (err error) {
		changes, version, err = s.Catalogue.ApplyToVersion(ctx, file, dryRun)
		return err
	})
	var found faults.List
	switch {
	case errors.As(err, &found):
		return reply{}, bodyFaults("invalid_catalogue", found)
	case errors.Is(err, catalogue.ErrVersionChanged):
		return reply{}, versionChanged()
	case err != nil:
		return reply{}, changeFailure(c, err, "get the catalogue to see whether it was")
	}
	body, err := render.JSON(struct {
		DryRun  bool               `json:"dryRun"`
		Changes []catalogue.Change `json:"changes"`
	}{dryRun, append([]catalogue.Change{}, changes...)})
	return reply{kind: results.JSON, body: body, keep: notKept, tag: catalogueTag(version, yamlType)}, err
}

func versionChanged() error {
	return newRefusal(http.StatusPreconditionFailed, "precondition_failed",
		"the catalogue has changed since the ETag in If-Match; nothing was changed: get it again, repeat your edit "+
			"and send it with the new ETag")
}

// useYAML calls use with the body, which is YAML or JSON, of at most most bytes. It does so for one request at a time,
// because a parsed body takes much memory.
func (s *API) useYAML(c *gin.Context, most int64, use func(io.Reader) error) error {
	if !hasContentType(c, []string{yamlType, "application/x-yaml", "text/yaml", results.JSON}) {
		return newRefusal(http.StatusUnsupportedMediaType, "unsupported_media_type",
			"Content-Type must be application/yaml or application/json")
	}
	held := &body{of: s.bodies}
	defer held.releaseMemory()
	if err := s.readBody(c.Request, held, most); err != nil {
		return err
	}
	if err := s.bodies.parsed.Acquire(c.Request.Context(), 1); err != nil {
		return err
	}
	defer s.bodies.parsed.Release(1)
	return use(bytes.NewReader(held.text))
}

func bodyFaults(code string, found faults.List) *problem {
	p := &problem{Status: http.StatusBadRequest, Code: code, Detail: "the body is invalid; nothing was changed"}
	for _, f := range found {
		if f.Line > 0 {
			f.Detail = fmt.Sprintf("line %d: %s", f.Line, f.Detail)
		}
		p.Errors = append(p.Errors, fault{"body", f.Name, faults.Clip(f.Value, 200), f.Detail})
	}
	return p
}

// changeSlots is the maximum number of concurrent changes. Starts and stops that arrive at the same time are stored
// together.
const changeSlots = 256

// admitTo wraps operations that need a slot of an admission. Changes of the store have admissions of their own, so they
// never wait behind reports.
func admitTo(admission *results.Admission, handle handler) handler {
	return func(c *gin.Context) (any, error) {
		leave, err := admission.AcquireSlot(c.Request.Context())
		if err != nil {
			return nil, err
		}
		defer leave()
		return handle(c)
	}
}

// switchHandler returns the handler of an operation that starts or stops a resource, and returns it. It ignores the
// body of the request.
func switchHandler[R catalogue.Placed, S any](s *API, of resources[R], active bool,
	show func(*R) S,
) handler {
	return admitTo(s.changes, func(c *gin.Context) (any, error) {
		p, err := s.parsePlace(c)
		if err != nil {
			return nil, err
		}
		var owned *catalogue.AccountResources
		var found bool
		ctx := byToken(c)
		err = within(ctx, func() (err error) {
			kind := schema.SubjectKind(of.kind)
			owned, found, err = s.Catalogue.Switch(ctx, p.owned.ID, p.website, kind, p.id, active)
			return err
		})
		switch { // after an error, the change may still run and set owned and found
		case err != nil:
			return nil, changeFailure(c, err, "repeat the request, which is idempotent")
		case !found:
			return nil, &query.NotFoundError{Kind: of.kind, ID: p.id}
		}
		live := of.all(owned)[p.id]
		return show(&live), nil
	})
}

// changeFailure returns the error of a change that the store did not make. next says what to do after a timeout.
func changeFailure(c *gin.Context, err error, next string) error {
	if found := faults.List(nil); errors.As(err, &found) {
		return found
	}
	if errors.Is(err, catalogue.ErrContested) {
		return unavailable("contested", err.Error(), retryAfter, err)
	}
	return describeTimeout(source.StoreFailure(c.Request.Context(), err),
		"the store did not answer in time and the change may still be made: "+next)
}

// token is a token or a share link, which is a token of the scope share.
type token struct {
	ID        int64             `json:"id"`
	Name      string            `json:"name,omitempty"`
	Scopes    []catalogue.Scope `json:"scopes"`
	WebsiteID int64             `json:"websiteId,omitempty"`
	*schema.SubjectIDs
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

func (s *API) readBodyYAML(c *gin.Context, asked any) error {
	return s.useYAML(c, 64<<10, func(text io.Reader) error {
		if _, err := catalogue.ReadDocument(text, asked); err != nil {
			return bodyProblem(err)
		}
		return nil
	})
}

type bodyFields struct{ faults.Collector }

// optionalID returns an id, or 0 if it is omitted.
func (f *bodyFields) optionalID(name string, given *int64) int64 {
	if given == nil {
		return 0
	}
	if *given < 1 {
		f.Add(name, *given, "must be an id, which is 1 or more, or be omitted")
	}
	return *given
}

// parseLifetime returns the lifetime in the field expires, or the default if it is omitted.
func (f *bodyFields) parseLifetime(given *string, otherwise time.Duration) time.Duration {
	if given == nil {
		return otherwise
	}
	lifetime, err := schema.ParseDuration(*given)
	if err != nil || lifetime < time.Second {
		f.Add("expires", *given, "must be a duration of a second or more, such as 30d or 12h, or be omitted")
	}
	return lifetime
}

// discoverCampaigns returns the campaigns in the events of the token's websites that the catalogue does not declare.
func (s *API) discoverCampaigns(c *gin.Context) ([]engine.Discovered, *catalogue.AccountResources, error) {
	owned, bound := s.accountResources(c)
	all, err := s.Engine.Discover(c.Request.Context(), owned)
	all = slices.DeleteFunc(all, func(d engine.Discovered) bool { return bound != 0 && d.WebsiteID != bound })
	return all, owned, source.StoreFailure(c.Request.Context(), err)
}

// listUndeclared returns the campaigns that arrived and are not declared, those with most visitors first.
func (s *API) listUndeclared(c *gin.Context) (any, error) {
	p := query.ReadParameters(c.Request.URL.RawQuery, websiteIDName, "limit", "search")
	asked, limit := p.ID(websiteIDName), p.ParseInteger("limit", 1, 1000, 100)
	search, _ := p.SingleValue("search")
	if err := p.Err(); err != nil {
		return nil, err
	}
	_, website, err := s.searchedWebsite(c, asked)
	if err != nil {
		return nil, err
	}
	all, _, err := s.discoverCampaigns(c)
	if err != nil {
		return nil, err
	}
	all = engine.SelectDiscovered(all, website, search)
	c.Header("X-Total-Count", strconv.Itoa(len(all)))
	return all[:min(len(all), limit)], nil
}

// declareCampaign declares a campaign that arrived, or ignores it.
func (s *API) declareCampaign(c *gin.Context) (any, error) {
	p := query.ReadParameters(c.Request.URL.RawQuery, "dryRun")
	dryRun := p.OneOf("dryRun", []string{"true", "false"}) == "true"
	if err := p.Err(); err != nil {
		return nil, err
	}
	var asked struct {
		engine.Declaration `yaml:",inline"`
		CampaignID         int64  `yaml:"campaignId"`
		Key                string `yaml:"key"`
	}
	if err := s.readBodyYAML(c, &asked); err != nil {
		return nil, err
	}
	name := "campaignId"
	if asked.Campaign = strconv.FormatInt(asked.CampaignID, 10); asked.Key != "" {
		name, asked.Campaign = "key", asked.Key
	}
	var wrong faults.Collector
	if asked.WebsiteID < 1 {
		wrong.Add("websiteId", asked.WebsiteID, "must be the id of a website")
	}
	if asked.Key != "" && asked.CampaignID != 0 {
		wrong.Add("key", asked.Key, "must not be given with campaignId")
	}
	if err := wrong.List.Err(); err != nil {
		return nil, err
	}
	all, owned, err := s.discoverCampaigns(c)
	if err != nil {
		return nil, err
	}
	file, found, err := engine.DeclareDiscovered(all, owned, asked.Declaration)
	if !found {
		wrong.Add(name, asked.Campaign, "must be, with its websiteId, a campaign that GET /v1/undeclared lists")
		return nil, wrong.List
	}
	if err != nil {
		return nil, err
	}
	return s.applyCatalogue(c, file, dryRun)
}
