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

// safeRequestID are the ids that can stand in any log.
var safeRequestID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// identify gives the request the id that its answer, its problem and the log
// carry: the sender's, if it is a safe one.
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
