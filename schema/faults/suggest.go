package faults

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// NearestName returns the name that is most similar to a misspelt one, ignoring case: the first name with the smallest
// Levenshtein distance. It returns an empty text if this distance is greater than a third of the misspelt name plus
// one. names must not be empty.
func NearestName(misspelt string, names []string) string {
	distance := func(name string) int {
		return levenshtein.ComputeDistance(strings.ToLower(misspelt), strings.ToLower(name))
	}
	nearest := slices.MinFunc(names, func(a, b string) int { return cmp.Compare(distance(a), distance(b)) })
	if misspelt == "" || distance(nearest) > len(misspelt)/3+1 {
		return ""
	}
	return nearest
}

// SuggestName returns a question that suggests the nearest name, or all names if none is similar.
func SuggestName(misspelt string, names []string) string {
	if nearest := NearestName(misspelt, names); nearest != "" {
		return "did you mean " + nearest + "?"
	}
	return OneOf(names...)
}

// OneOf lists the allowed values.
func OneOf(allowed ...string) string { return "must be one of " + strings.Join(allowed, ", ") }
