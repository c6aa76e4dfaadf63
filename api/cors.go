package api

import (
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"
)

// What a page of an allowed origin may send beside the plainest headers, and
// read of an answer beside its body.
const (
	sentByPages = "Authorization, Accept, Cache-Control, Content-Encoding, Content-Type, Idempotency-Key, If-None-Match, X-Request-Id"
	readByPages = "Content-Disposition, ETag, Link, Retry-After, Warning, WWW-Authenticate, X-Request-Id, X-Total-Count"
)

// shared lets pages of the configured origins read answers (CORS). Others get
// their answers too, without the leave to read them: a browser keeps the page
// from it, and clients that are none do not care. Credentials are never
// allowed: a token travels in a header that the page sets itself.
func (s *server) cors(c *gin.Context) {
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

// options answers OPTIONS of a path that has other methods, a browser's
// question before a request too.
func (s *server) optionsOf(c *gin.Context, allow string) {
	if c.Writer.Header().Get("Access-Control-Allow-Origin") != "" && c.GetHeader("Access-Control-Request-Method") != "" {
		c.Header("Access-Control-Allow-Methods", allow)
		c.Header("Access-Control-Allow-Headers", sentByPages)
		c.Header("Access-Control-Max-Age", "600")
	}
	c.AbortWithStatus(http.StatusNoContent)
}
