package chart_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"lifthouse/loadgen/chart"
)

// wellFormed fails unless svg is a well-formed XML document with finite
// coordinates.
func wellFormed(t *testing.T, svg []byte) {
	t.Helper()
	if text := string(svg); strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
		t.Errorf("coordinates are not finite:\n%s", text)
	}
	decoder := xml.NewDecoder(strings.NewReader(string(svg)))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v\n%s", err, svg)
		}
	}
}

func TestLines(t *testing.T) {
	for name, test := range map[string]struct {
		x, y   chart.Axis
		points []chart.Point
		want   []string // texts
	}{
		"linear":      {chart.Axis{Label: "a < b"}, chart.Axis{Zero: true}, []chart.Point{{X: 1, Y: 2}, {X: 3, Y: 9}}, []string{"a &lt; b", ">1.5<", ">0<", ">10<", ">One<"}},
		"logarithmic": {chart.Axis{Log: true}, chart.Axis{Log: true}, []chart.Point{{X: 10, Y: 0.5}, {X: 100_000, Y: 300}}, []string{">10<", ">100000<", ">0.5<", ">500<"}},
		"custom":      {chart.Axis{Ticks: []chart.Tick{{Value: 1, Label: "low"}, {Value: 7, Label: "beyond"}}}, chart.Axis{}, []chart.Point{{X: 1, Y: 1}, {X: 3, Y: 1}}, []string{">low<"}},
		"one point":   {chart.Axis{}, chart.Axis{Log: true}, []chart.Point{{X: 5, Y: 5}}, []string{">5<"}},
		"no points":   {chart.Axis{}, chart.Axis{}, nil, []string{">One<"}},
	} {
		c := chart.Lines{Title: "Title", X: test.x, Y: test.y, Lines: []chart.Line{{Name: "One", Color: chart.Blue, Dots: true, Points: test.points}}}
		svg, err := c.SVG()
		if err != nil {
			t.Fatal(err)
		}
		wellFormed(t, svg)
		for _, want := range test.want {
			if !strings.Contains(string(svg), want) {
				t.Errorf("%s: no %q in\n%s", name, want, svg)
			}
		}
		if strings.Contains(string(svg), "beyond") {
			t.Errorf("%s: the chart has a tick outside its range", name)
		}
		if n := strings.Count(string(svg), "<circle"); n != len(test.points) {
			t.Errorf("%s: %d dots, want %d", name, n, len(test.points))
		}
	}
}

func TestRows(t *testing.T) {
	one := 1.0
	c := chart.Rows{Title: "Ratios", X: chart.Axis{Label: "ratio", Zero: true}, Reference: &one, Legend: []chart.LegendEntry{{Name: "A & B", Color: chart.Orange}}, Rows: []chart.Row{
		{Label: "Heading"},
		{Label: "first", Bar: &chart.Bar{From: 0, To: 3, Color: chart.Orange}, Value: "3.0 ×"},
		{Label: "second", Bar: &chart.Bar{From: -1, To: 1, Color: chart.Pale}, Point: &chart.Dot{At: 0.5, Color: chart.Red}},
	}}
	svg, err := c.SVG()
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, svg)
	for _, want := range []string{"A &amp; B", ">Heading<", ">3.0 ×<", chart.Red, "stroke-dasharray"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("no %q in\n%s", want, svg)
		}
	}
}
