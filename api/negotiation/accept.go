package negotiation

import (
	"mime"
	"strconv"
	"strings"
)

// PreferredType returns the offer with the highest quality in the Accept header (RFC
// 9110, 12.5.1). Among equals it returns the first, and "" if no offer is
// acceptable. Without the header, every offer is acceptable.
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

// qualityOf returns the quality of the most specific range that matches the
// offer.
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
