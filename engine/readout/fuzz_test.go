package readout_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"lifthouse/engine/readout"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"

	"golang.org/x/net/html"
)

// FuzzTextsOfReadouts writes a page all of whose texts are one text. It has the elements of a page with harmless texts, no
// attribute that runs a script, and the text where it belongs.
func FuzzTextsOfReadouts(f *testing.F) {
	for _, text := range []string{
		hostile, "a", "", "\n", "]]>", "--><script>", `" onload="x`, "' style='x", "javascript:x", "&lt;b&gt;", "\u2028", "{{.}}",
		"<svg/onload=x>", "</section></main>", "\x00", "\u202e", `\3c script`, "url(x)",
	} {
		f.Add(text)
	}
	want, _, _ := readPage(f, "harmless")
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return // no name, note or comment is
		}
		got, attributes, comment := readPage(t, text)
		check.Equal(t, strings.Join(got, " "), strings.Join(want, " "), "elements with %q", text)
		for _, name := range attributes {
			check.That(t, !strings.HasPrefix(name, "on"), "attribute %s with %q", name, text)
		}
		clean := strings.NewReplacer("\x00", "\ufffd", "\r\n", "\n", "\r", "\n").Replace(text)
		check.Equal(t, comment, clean, "the text")
	})
}

// readPage returns the elements of a page with a text, the names of their attributes, and the comment.
func readPage(tb testing.TB, text string) (elements, attributes []string, comment string) {
	tb.Helper()
	bar := &readout.Bar{Label: text, Zero: "150.0", From: "10.0", To: "290.0", Point: "160.0", Margin: "20.0"}
	effect := readout.Effect{
		Name: text, Role: text, Variation: "x" + text, Lift: text, Interval: text, Bar: bar, Verdict: text, Tone: "good",
		Visitors: text,
	}
	d := &readout.Document{
		Website: text, Period: text, Name: text, Hypothesis: "x" + text, Facts: []string{text, text},
		Answer: readout.Answer{
			Label: text, Tone: "bad", Text: text, Decided: "x" + text, Done: "x" + text,
			Figures: []readout.Figure{{Name: text, Value: text, More: "x" + text}},
		},
		Variations: []readout.Variation{{Name: text, Share: text, Visitors: text, Value: text}}, Metric: text,
		Logo:       readout.Image{ID: "x", Address: "data:image/jpeg;base64,AA=="},
		Pictures:   []readout.Image{{ID: text, Name: text, Address: "data:image/jpeg;base64,AA=="}},
		TestedNote: "x" + text, Why: []readout.Effect{effect}, WhyNote: text,
		Looks:  []readout.Look{{Number: text, Date: text, Variation: text, Lift: text}},
		Checks: []readout.Check{{IsPassed: true, Text: text}, {Text: text}}, LooksNote: text,
		Segments: &readout.Segments{Text: text, Rows: []readout.Effect{effect}}, Comment: []string{text},
		Log: []readout.Entry{{Date: text, By: "x" + text, Text: text}}, Earlier: 3,
	}
	page := must.Get(d.Render(&readout.Foot{ID: text, Release: text, Address: text, Predecessor: "x" + text}))(tb)
	for n := range must.Get(html.Parse(strings.NewReader(string(page))))(tb).Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		elements = append(elements, n.Data)
		for _, a := range n.Attr {
			attributes = append(attributes, a.Key)
			if a.Key == "class" && a.Val == "lines" && n.FirstChild != nil {
				comment = n.FirstChild.Data
			}
		}
	}
	return elements, attributes, comment
}
