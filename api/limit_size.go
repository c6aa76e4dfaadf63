package api

import (
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"
)

// Limits of the parts of a request other than the body. They are below
// http.Server.MaxHeaderBytes, above which net/http answers with a plain 431.
const (
	maxPath    = 1 << 10
	maxQuery   = 8 << 10
	maxHeaders = 32 << 10
)

// limitSize rejects requests that are too large. An unknown path or method
// takes precedence.
func (s *server) limitSize(c *gin.Context) {
	if c.FullPath() == "" {
		return
	}
	headers := 0
	for name, values := range c.Request.Header {
		for _, value := range values {
			headers += len(name) + len(value)
		}
	}
	switch {
	case len(c.Request.URL.RawQuery) > maxQuery:
		tooLarge(c, http.StatusRequestURITooLong, "uri_too_long", "query", maxQuery, int64(len(c.Request.URL.RawQuery)))
	case len(c.Request.URL.EscapedPath()) > maxPath:
		tooLarge(c, http.StatusRequestURITooLong, "uri_too_long", "path", maxPath, int64(len(c.Request.URL.EscapedPath())))
	case headers > maxHeaders:
		tooLarge(c, http.StatusRequestHeaderFieldsTooLarge, "headers_too_large", "headers", maxHeaders, int64(headers))
	case s.options.MaxBody > 0 && c.Request.ContentLength > s.options.MaxBody:
		tooLarge(c, http.StatusRequestEntityTooLarge, "body_too_large", "body", s.options.MaxBody, c.Request.ContentLength)
	case s.options.MaxBody > 0:
		c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, s.options.MaxBody)
	}
}

func tooLarge(c *gin.Context, status int, code, what string, want, have int64) {
	c.Header("Connection", "close") // the rest of the request is not read
	writeProblem(c, &problem{Status: status, Code: code, Detail: fmt.Sprintf("the %s must have at most %d bytes; it has %d", what, want, have)})
}
