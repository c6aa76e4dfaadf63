package stats

import (
	"fmt"
	"testing"

	"lifthouse/schema/schematest/check"
)

func TestCommonEnds(t *testing.T) {
	for _, c := range []struct {
		name  string
		lists [][]float64
		want  []float64
	}{
		{"one list", [][]float64{{-1, 0, 2}}, []float64{-1, 0, 2}},
		{"the narrowest", [][]float64{{0, 4}, {0, 1, 2, 3, 4}}, []float64{0, 1, 2, 3, 4}},
		{"one list begins later", [][]float64{{0, 4}, {2, 3, 4}}, []float64{0, 2, 3, 4}},
		{"one list ends earlier", [][]float64{{0, 1, 2}, {0, 4}}, []float64{0, 1, 2, 4}},
		{"other places", [][]float64{{0, 3, 6}, {1, 2, 6}}, []float64{0, 1, 2, 5, 6}},
		{"a point", [][]float64{{1, 1}}, []float64{1}},
	} {
		check.Equal(t, fmt.Sprint(commonEnds(c.lists)), fmt.Sprint(c.want), c.name)
	}
}
