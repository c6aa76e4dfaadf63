package api

import (
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"
)

// Headers that a page of an allowed origin may send and read.
const (
	sentByPages = "Authorization, Accept, Cache-Control, Content-Encoding, Content-Type, Idempotency-Key, If-Match, If-None-Match, Mcp-Method, Mcp-Name, Mcp-Protocol-Version, X-Request-Id"
	readByPages = "Content-Disposition, ETag, Link, Location, Retry-After, Warning, WWW-Authenticate, X-Request-Id, X-Token-Scopes, X-Total-Count"
)

// setCORSHeaders lets pages of the configured origins read responses. Other origins get
// responses without the CORS headers, so browsers hide them from the page.
// Credentials are never allowed: a page sets the token in a header.
func (s *server) setCORSHeaders(c *gin.Context) {
	if len(s.options.Origins) == 0 {
		return
	}
	c.Writer.Header().Add("Vary", "Origin")
	origin := c.GetHeader("Origin")
	switch {
	case origin == "":
		return
	case slices.Contains(s.options.Origins, "*"):
		origin = "*"
	case !slices.Contains(s.options.Origins, origin):
		return
	}
	c.Header("Access-Control-Allow-Origin", origin)
	c.Header("Access-Control-Expose-Headers", readByPages)
}

// optionsOf answers OPTIONS requests, including CORS preflight requests.
func (s *server) optionsOf(c *gin.Context, allow string) {
	if c.Writer.Header().Get("Access-Control-Allow-Origin") != "" && c.GetHeader("Access-Control-Request-Method") != "" {
		c.Header("Access-Control-Allow-Methods", allow)
		c.Header("Access-Control-Allow-Headers", sentByPages)
		c.Header("Access-Control-Max-Age", "600")
	}
	c.AbortWithStatus(http.StatusNoContent)
}
