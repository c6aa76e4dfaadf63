package api

import (
	"crypto/rand"
	"regexp"

	"github.com/gin-gonic/gin"
)

const (
	requestIDKey    = "requestId"
	requestIDHeader = "X-Request-Id"
)

// safeRequestID are the ids that can stand in any log.
var safeRequestID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// identify gives the request the id that its answer, its problem and the log
// carry: the sender's, if it is a safe one.
func identify(c *gin.Context) {
	id := c.GetHeader(requestIDHeader)
	if !safeRequestID.MatchString(id) {
		id = rand.Text()
	}
	c.Set(requestIDKey, id)
	c.Header(requestIDHeader, id)
	c.Next()
}
