// Package negotiation reads request headers: the acceptable content types, and whether the client wants a conditional
// or a newly computed response (RFC 9110, RFC 9111).
package negotiation

import (
	"crypto/sha256"
	"encoding/base64"
	"io"
	"mime"
	"net/http"
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

// PreferredType returns the offer with the highest quality in the Accept header (RFC 9110, 12.5.1). Among equals it
// returns the first, and "" if no offer is acceptable. Without the header, every offer is acceptable.
func PreferredType(accept, offers []string) string {
	header := strings.Join(accept, ",")
	if strings.Trim(header, " ,") == "" {
		return offers[0]
	}
	ranges := mediaRanges(header)
	best, liked := "", 0.0
	for _, offer := range offers {
		if q := qualityOf(offer, ranges); q > liked {
			best, liked = offer, q
		}
	}
	return best
}

type mediaRange struct {
	name    string // type/subtype, type/* or */*
	quality float64
}

// mediaRanges parses the valid media ranges of the header.
func mediaRanges(header string) []mediaRange {
	var ranges []mediaRange
	for part := range strings.SplitSeq(header, ",") {
		name, parameters, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		quality := 1.0
		if q, given := parameters["q"]; given {
			if quality, err = strconv.ParseFloat(q, 64); err != nil || !(quality >= 0 && quality <= 1) {
				continue
			}
		}
		ranges = append(ranges, mediaRange{name, quality})
	}
	return ranges
}

// qualityOf returns the quality of the most specific range that matches the offer.
func qualityOf(offer string, ranges []mediaRange) float64 {
	family, _, _ := strings.Cut(offer, "/")
	for _, name := range []string{offer, family + "/*", "*/*"} {
		best, found := 0.0, false
		for _, r := range ranges {
			if r.name == name {
				best, found = max(best, r.quality), true
			}
		}
		if found {
			return best
		}
	}
	return 0
}
