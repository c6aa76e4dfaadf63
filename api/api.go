// Package api is the HTTP API under /v1: authentication, parameters, bodies
// and problems. What is computed comes from the engine.
package api

import (
	"bytes"
	"encoding/json"
	"net/http"

	"lifthouse/engine"
	"lifthouse/schema/catalogue"

	"github.com/gin-gonic/gin"
)

// server answers requests from one engine and one catalogue.
type server struct {
	engine    *engine.Engine
	catalogue *catalogue.Catalogue
}

// New returns the handler of the whole API.
func New(e *engine.Engine, c *catalogue.Catalogue) http.Handler {
	s := &server{engine: e, catalogue: c}
	return s.router()
}

func (s *server) router() http.Handler {
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.HandleMethodNotAllowed = true
	router.RedirectTrailingSlash = false
	router.UseRawPath = true // an encoded slash is part of an id, and of no route
	router.Use(identify, recovered)
	router.NoRoute(func(c *gin.Context) {
		refuse(c, notFound("there is nothing at "+c.Request.URL.Path))
	})
	router.NoMethod(func(c *gin.Context) {
		refuse(c, &problem{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Detail: "allowed here: " + c.Writer.Header().Get("Allow")})
	})
	s.routes(router)
	return router
}

// routes has every operation; each GET answers HEAD too.
func (s *server) routes(router *gin.Engine) {
	read := router.Group("/v1", s.authenticated(catalogue.ScopeRead))
	get := func(path string, handle func(*gin.Context) (any, error)) {
		read.GET(path, answer(handle))
		read.HEAD(path, answer(handle))
	}
	get("/campaigns", s.listCampaigns)
	get("/campaigns/:id", s.getCampaign)
	get("/campaigns/:id/results", s.results(engine.CampaignResults))
	get("/widgets/:id/results", s.results(engine.WidgetResults))
	get("/widgets/:id/experiments/:experimentId/results", s.results(engine.ExperimentResults))
	get("/widgets", s.listWidgets)
	get("/widgets/:id", s.getWidget)
	get("/goals", s.listGoals)
	get("/goals/:id", s.getGoal)
	get("/targets", s.listTargets)
	get("/targets/:id", s.getTarget)
	get("/websites", s.listWebsites)
	write := router.Group("/v1", s.authenticated(catalogue.ScopeWrite))
	write.POST("/campaigns/:id/start", answer(s.switchCampaign(true)))
	write.POST("/campaigns/:id/stop", answer(s.switchCampaign(false)))
	write.POST("/widgets/:id/start", answer(s.switchWidget(true)))
	write.POST("/widgets/:id/stop", answer(s.switchWidget(false)))
	s.describe(router)
}

// plain is a body that is not JSON.
type plain struct{ kind, text string }

// answer writes what the handler returns: a body, or a problem.
func answer(handle func(*gin.Context) (any, error)) gin.HandlerFunc {
	return func(c *gin.Context) {
		body, err := handle(c)
		if err != nil {
			refuse(c, problemOf(err))
			return
		}
		if text, ok := body.(plain); ok {
			c.Data(http.StatusOK, text.kind+"; charset=utf-8", []byte(text.text))
			return
		}
		text, err := encode(body)
		if err != nil {
			refuse(c, problemOf(err))
			return
		}
		c.Data(http.StatusOK, "application/json; charset=utf-8", text)
	}
}

// encode writes JSON for people to read too: < and > stay as they are. It is
// whole before any of it is sent, so that an error can still be told.
func encode(body any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(body)
	return text.Bytes(), err
}
