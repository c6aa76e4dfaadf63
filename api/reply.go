package api

import (
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"
)

// reply is a complete response body.
type reply struct {
	kind  string
	body  []byte
	tag   string // entity tag; empty: no conditional requests
	keep  string // Cache-Control
	stale bool
}

// Values of Cache-Control.
const (
	// revalidated is for data that a start, a stop or an apply changes at once.
	revalidated = "private, no-cache"
	// briefly is for results, whose data are refreshed every second.
	briefly = "private, max-age=1"
	// notKept is for responses that must not be cached.
	notKept = "no-store"
)

// varies lists the headers that determine a response. Browsers cache by URL and
// may use different tokens.
const varies = "Accept, Authorization"

// send sends the reply, or 304 if the client has it.
func send(c *gin.Context, r reply) {
	c.Header("Cache-Control", r.keep)
	if r.tag != "" {
		c.Header("ETag", r.tag)
		if matches(c.Request, r.tag) {
			notModified(c)
			return
		}
	}
	if r.stale {
		c.Header("Warning", `110 lifthouse "Response is Stale"`)
	}
	c.Data(http.StatusOK, r.kind+"; charset=utf-8", r.body)
}

func notModified(c *gin.Context) {
	c.Status(http.StatusNotModified)
	c.Writer.WriteHeaderNow()
}

// tagOf returns a weak entity tag of everything that determines a response. It
// is weak because generatedAt may differ.
func tagOf(parts ...string) string {
	digest := sha256.New()
	for _, part := range parts {
		_, _ = io.WriteString(digest, strconv.Itoa(len(part))+":"+part)
	}
	return `W/"` + base64.RawURLEncoding.EncodeToString(digest.Sum(nil)[:16]) + `"`
}

// matches reports whether the client has the response with this tag (RFC 9110,
// 13.1.2).
func matches(request *http.Request, tag string) bool {
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		return false
	}
	opaque := strings.TrimPrefix(tag, "W/")
	for candidate := range strings.SplitSeq(strings.Join(request.Header.Values("If-None-Match"), ","), ",") {
		candidate = strings.TrimSpace(candidate)
		if candidate == "*" || strings.TrimPrefix(candidate, "W/") == opaque {
			return true
		}
	}
	return false
}

// wantsNew reports whether the client requests a newly computed response.
func wantsNew(request *http.Request) bool {
	for directive := range strings.SplitSeq(strings.Join(request.Header.Values("Cache-Control"), ","), ",") {
		if strings.EqualFold(strings.TrimSpace(directive), "no-cache") {
			return true
		}
	}
	return false
}
