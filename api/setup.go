package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"lifthouse/api/results"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"

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
	limited.POST("/v1/rates", change(withoutParameters(s.importRates)))
	limited.POST("/shares", change(withoutParameters(s.createShare)))
}

// useYAML calls use with the body, which is YAML or JSON, of at most most bytes. It does so for one request at a time,
// because a parsed body takes much memory.
func (s *API) useYAML(c *gin.Context, most int64, use func(io.Reader) error) error {
	types := []string{yamlType, "application/x-yaml", "text/yaml", results.JSON}
	return s.useBody(c, types, "application/yaml or application/json", most, use)
}

// useBody is like useYAML, for a body of one of some types.
func (s *API) useBody(c *gin.Context, types []string, inWords string, most int64, use func(io.Reader) error) error {
	if !hasContentType(c, types) {
		return newRefusal(http.StatusUnsupportedMediaType, "unsupported_media_type", "Content-Type must be "+inWords)
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
