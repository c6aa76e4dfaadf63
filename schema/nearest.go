package schema

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// NearestName returns the name that is most similar to a misspelt one, ignoring case. It is
// the first name with the smallest Levenshtein distance. names must not be empty.
func NearestName(misspelt string, names []string) string {
	misspelt = strings.ToLower(misspelt)
	return slices.MinFunc(names, func(a, b string) int {
		return cmp.Compare(levenshtein.ComputeDistance(misspelt, strings.ToLower(a)), levenshtein.ComputeDistance(misspelt, strings.ToLower(b)))
	})
}
