// Package negotiation reads request headers: the acceptable content types, and whether the client wants a conditional
// or a newly computed response (RFC 9110, RFC 9111).
package negotiation

import (
	"crypto/sha256"
	"encoding/base64"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// EntityTag returns a weak entity tag of everything that determines a response. It is weak because generatedAt may
// differ.
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
	isRead := request.Method == http.MethodGet || request.Method == http.MethodHead
	return isRead && ListsTag(request, "If-None-Match", tag)
}

// ListsTag reports whether a header lists one of the tags, or all. A proxy that compresses may have made a strong tag
// weak, which does not change what it means.
func ListsTag(request *http.Request, header string, tags ...string) bool {
	for _, candidate := range valuesOf(request, header) {
		isSame := func(tag string) bool { return strings.TrimPrefix(tag, "W/") == strings.TrimPrefix(candidate, "W/") }
		if candidate == "*" || slices.ContainsFunc(tags, isSame) {
			return true
		}
	}
	return false
}

// WantsNew reports whether the client requests a newly computed response.
func WantsNew(request *http.Request) bool {
	return slices.ContainsFunc(valuesOf(request, "Cache-Control"),
		func(directive string) bool { return strings.EqualFold(directive, "no-cache") })
}

// valuesOf returns the comma-separated values of a header.
func valuesOf(request *http.Request, header string) []string {
	values := strings.Split(strings.Join(request.Header.Values(header), ","), ",")
	for i, value := range values {
		values[i] = strings.TrimSpace(value)
	}
	return values
}

// PreferredType returns the offer with the highest quality in the Accept header (RFC 9110, 12.5.1): that of the most
// specific range that matches it. Among equals it returns the first, and "" if no offer is acceptable. Without the
// header, every offer is acceptable. Invalid ranges are ignored.
func PreferredType(accept, offers []string) string {
	header := strings.Join(accept, ",")
	if strings.Trim(header, " ,") == "" {
		return offers[0]
	}
	qualities := map[string]float64{} // of type/subtype, type/* or */*
	for part := range strings.SplitSeq(header, ",") {
		name, parameters, err := mime.ParseMediaType(part)
		quality := 1.0
		if q, given := parameters["q"]; given && err == nil {
			quality, err = strconv.ParseFloat(q, 64)
		}
		if err == nil && quality >= 0 && quality <= 1 {
			qualities[name] = max(qualities[name], quality)
		}
	}
	best, liked := "", 0.0
	for _, offer := range offers {
		family, _, _ := strings.Cut(offer, "/")
		quality := 0.0
		for _, name := range []string{"*/*", family + "/*", offer} {
			if q, matches := qualities[name]; matches {
				quality = q
			}
		}
		if quality > liked {
			best, liked = offer, quality
		}
	}
	return best
}
