package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"lifthouse/engine/query"
	"lifthouse/schema/catalogue"

	"github.com/gin-gonic/gin"
)

const tokenKey = "token"

const realm = `Bearer realm="lifthouse"`

// tokenScopesHeader is the response header with the scopes of the token. With it, clients
// offer only what the token permits.
const tokenScopesHeader = "X-Token-Scopes"

// scopesOf returns the scopes of a token, separated by spaces (RFC 6749, section 3.3).
func scopesOf(token catalogue.Token) string {
	names := make([]string, len(token.Scopes))
	for i, scope := range token.Scopes {
		names[i] = string(scope)
	}
	return strings.Join(names, " ")
}

// requireScope accepts requests with a token that has the scope, or one of the alternatives
// (RFC 6750).
func (s *server) requireScope(scope catalogue.Scope, alternatives ...catalogue.Scope) gin.HandlerFunc {
	return func(c *gin.Context) {
		c.Writer.Header().Add("Vary", varies)
		scheme, secret, _ := strings.Cut(c.GetHeader("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") || secret == "" {
			c.Header("WWW-Authenticate", realm)
			writeProblem(c, &problem{Status: http.StatusUnauthorized, Code: "unauthenticated", Detail: "send the header Authorization: Bearer <token>; create a token with lifthouse token create"})
			return
		}
		token, known := s.Catalogue.Snapshot().FindToken(catalogue.DigestOf(strings.TrimSpace(secret)), time.Now())
		if !known {
			if p := s.checkFailureRate(c.Request); p != nil {
				s.metrics.rateLimited.Inc()
				writeProblem(c, p)
				return
			}
			c.Header("WWW-Authenticate", realm+`, error="invalid_token"`)
			writeProblem(c, &problem{Status: http.StatusUnauthorized, Code: "invalid_token", Detail: "the token is unknown, expired or revoked"})
			return
		}
		recordOf(c.Request.Context()).token = token
		c.Header(tokenScopesHeader, scopesOf(token))
		if p := s.checkTokenRate(&token, scope); p != nil {
			s.metrics.rateLimited.Inc()
			writeProblem(c, p)
			return
		}
		if !token.HasScope(scope) && !slices.ContainsFunc(alternatives, token.HasScope) {
			c.Header("WWW-Authenticate", realm+`, error="insufficient_scope", scope="`+string(scope)+`"`)
			writeProblem(c, &problem{Status: http.StatusForbidden, Code: "insufficient_scope", Detail: "the token lacks the scope " + string(scope)})
			return
		}
		c.Set(tokenKey, token)
		c.Next()
	}
}

// tokenOf returns the token of an authenticated request.
func tokenOf(c *gin.Context) catalogue.Token { return c.MustGet(tokenKey).(catalogue.Token) }

// accountResources returns the resources of the token's account, or those that its share
// link shows. It also returns the website of a token that is bound to one, or 0.
func (s *server) accountResources(c *gin.Context) (*catalogue.AccountResources, int64) {
	token := tokenOf(c)
	owned := s.Catalogue.Snapshot().AccountResources(token.AccountID)
	if token.Shared != nil {
		owned = owned.SharedView(token.Shared)
	}
	return owned, token.WebsiteID
}

// reportedResources is like accountResources, for reports of an operation. A share link of an
// experiment reads the widget, but not the widget's own report.
func (s *server) reportedResources(c *gin.Context, operation query.Operation) (*catalogue.AccountResources, int64) {
	owned, bound := s.accountResources(c)
	if shared := tokenOf(c).Shared; shared != nil && shared.ExperimentID != 0 && operation == query.WidgetResults {
		owned.Widgets = nil
	}
	return owned, bound
}

// byToken returns the context of the request with its token as the author of
// changes.
func byToken(c *gin.Context) context.Context {
	token := tokenOf(c)
	return catalogue.WithAuthor(c.Request.Context(), strings.TrimSpace(fmt.Sprintf("token %d %s", token.ID, token.Name)))
}
