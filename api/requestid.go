package api

import (
	"crypto/rand"
	"regexp"

	"github.com/gin-gonic/gin"

	"lifthouse/schema/catalogue"
)

const (
	requestIDKey    = "requestId"
	requestIDHeader = "X-Request-Id"
)

// safeRequestID matches ids that are safe in logs.
var safeRequestID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// requestID sets the id of a request in its response, its problem and the log. It
// uses the client's id if that is safe, and a new one otherwise.
func requestID(c *gin.Context) {
	id := c.GetHeader(requestIDHeader)
	if !safeRequestID.MatchString(id) || catalogue.RedactTokens(id) != id {
		id = rand.Text()
	}
	r := recordOf(c.Request.Context())
	r.requestID = id
	if route := c.FullPath(); route != "" {
		r.route = route
	}
	c.Set(requestIDKey, id)
	c.Header(requestIDHeader, id)
	c.Header("X-Content-Type-Options", "nosniff")
	c.Next()
}
