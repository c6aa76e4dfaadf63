// Package negotiation reads request headers: the acceptable content types, and
// whether the client wants a conditional or a newly computed response (RFC 9110, RFC
// 9111).
package negotiation

import (
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// EntityTag returns a weak entity tag of everything that determines a response. It
// is weak because generatedAt may differ.
func EntityTag(parts ...string) string {
	digest := sha256.New()
	for _, part := range parts {
		_, _ = io.WriteString(digest, strconv.Itoa(len(part))+":"+part)
	}
	return `W/"` + base64.RawURLEncoding.EncodeToString(digest.Sum(nil)[:16]) + `"`
}

// MatchesTag reports whether the client has the response with this tag (RFC 9110,
// 13.1.2).
func MatchesTag(request *http.Request, tag string) bool {
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

// WantsNew reports whether the client requests a newly computed response.
func WantsNew(request *http.Request) bool {
	for directive := range strings.SplitSeq(strings.Join(request.Header.Values("Cache-Control"), ","), ",") {
		if strings.EqualFold(strings.TrimSpace(directive), "no-cache") {
			return true
		}
	}
	return false
}
