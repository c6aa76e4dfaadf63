package api

import (
	"cmp"
	"net/http"

	"lifthouse/api/negotiation"

	"github.com/gin-gonic/gin"
)

// reply is a complete response body.
type reply struct {
	status int // 0: 200
	kind   string
	body   []byte
	tag    string // entity tag; empty: no conditional requests
	keep   string // Cache-Control
	stale  bool
}

// Values of Cache-Control.
const (
	// revalidated is for data that a start, a stop or an apply changes immediately.
	revalidated = "private, no-cache"
	// briefly is for results, whose data are refreshed every second.
	briefly = "private, max-age=1"
	// notKept is for responses that must not be cached.
	notKept = "no-store"
)

// varies lists the headers that determine a response. Browsers cache by URL and
// may use different tokens.
const varies = "Accept, Authorization"

// sendReply sends the reply, or 304 if the client has it.
func sendReply(c *gin.Context, r reply) {
	c.Header("Cache-Control", r.keep)
	if r.tag != "" {
		c.Header("ETag", r.tag)
		if negotiation.MatchesTag(c.Request, r.tag) {
			notModified(c)
			return
		}
	}
	if r.stale {
		c.Header("Warning", `110 lifthouse "Response is Stale"`)
	}
	if r.status == http.StatusNoContent {
		c.Status(r.status)
		c.Writer.WriteHeaderNow()
		return
	}
	c.Data(cmp.Or(r.status, http.StatusOK), r.kind+"; charset=utf-8", r.body)
}

func notModified(c *gin.Context) {
	c.Status(http.StatusNotModified)
	c.Writer.WriteHeaderNow()
}
