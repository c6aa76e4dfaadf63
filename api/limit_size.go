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

// limitSize rejects requests that are too large. The error for an unknown path or
// method takes precedence.
func (s *server) limitSize(c *gin.Context) {
	if c.FullPath() == "" {
		return
	}
	var headers int64
	for name, values := range c.Request.Header {
		for _, value := range values {
			headers += int64(len(name) + len(value))
		}
	}
	path, query, body := int64(len(c.Request.URL.EscapedPath())), int64(len(c.Request.URL.RawQuery)), s.options.MaxBody
	switch {
	case query > maxQuery:
		tooLarge(c, http.StatusRequestURITooLong, "query", maxQuery, query)
	case path > maxPath:
		tooLarge(c, http.StatusRequestURITooLong, "path", maxPath, path)
	case headers > maxHeaders:
		tooLarge(c, http.StatusRequestHeaderFieldsTooLarge, "headers", maxHeaders, headers)
	case body > 0 && c.Request.ContentLength > body:
		tooLarge(c, http.StatusRequestEntityTooLarge, "body", body, c.Request.ContentLength)
	case body > 0:
		c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, body)
	}
}

var tooLargeCodes = map[int]string{
	http.StatusRequestURITooLong: "uri_too_long", http.StatusRequestHeaderFieldsTooLarge: "headers_too_large", http.StatusRequestEntityTooLarge: "body_too_large",
}

func tooLarge(c *gin.Context, status int, what string, most, has int64) {
	c.Header("Connection", "close") // the rest of the request is not read
	writeProblem(c, &problem{Status: status, Code: tooLargeCodes[status], Detail: fmt.Sprintf("the %s must have at most %d bytes; it has %d", what, most, has)})
}
