package api

import (
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"
)

// Bounds of a request beside its body. net/http has one of its own for line
// and headers together (http.Server.MaxHeaderBytes), above these, and answers
// beyond it with a plain 431.
const (
	maxPath    = 1 << 10
	maxQuery   = 8 << 10
	maxHeaders = 32 << 10
)

// bounded refuses what is larger than any honest request. Where there is
// nothing, or not by this method, that is the answer whatever the size.
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
	c.Header("Connection", "close") // what else it sends is not read
	writeProblem(c, &problem{Status: status, Code: code, Detail: fmt.Sprintf("the %s: want at most %d bytes, have %d", what, want, have)})
}
