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

// reply is a body that is ready to be sent.
type reply struct {
	kind  string
	body  []byte
	tag   string // entity tag; empty: it is not to be asked for again
	keep  string // Cache-Control
	stale bool
}

// How long a client may use an answer without asking whether it still holds.
const (
	// revalidated is of what a start, a stop or an apply changes at once.
	revalidated = "private, no-cache"
	// briefly is of results: their data are looked at once a second.
	briefly = "private, max-age=1"
	// notKept is of what is out of date already, or will be.
	notKept = "no-store"
)

// varies are the headers that choose the answer. A browser keeps answers by
// their URL, and may be given another account's token.
const varies = "Accept, Authorization"

// send answers with the reply, or with 304 where the client has it.
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

// tagOf makes a weak entity tag of all that decides an answer. It is weak for
// the same report is told with another generatedAt.
func tagOf(parts ...string) string {
	digest := sha256.New()
	for _, part := range parts {
		_, _ = io.WriteString(digest, strconv.Itoa(len(part))+":"+part)
	}
	return `W/"` + base64.RawURLEncoding.EncodeToString(digest.Sum(nil)[:16]) + `"`
}

// matches says whether the client has the answer with this tag (RFC 9110,
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

// wantsNew says whether the client asks for an answer that is computed for it.
func wantsNew(request *http.Request) bool {
	for directive := range strings.SplitSeq(strings.Join(request.Header.Values("Cache-Control"), ","), ",") {
		if strings.EqualFold(strings.TrimSpace(directive), "no-cache") {
			return true
		}
	}
	return false
}
