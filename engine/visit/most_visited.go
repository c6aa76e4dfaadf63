package visit

import (
	"cmp"
	"maps"
	"slices"
)

// mostVisited returns the values sorted by visitors, descending.
func MostVisited(visitors map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(visitors), func(a, b string) int {
		return cmp.Or(cmp.Compare(visitors[b], visitors[a]), cmp.Compare(a, b))
	})
}
