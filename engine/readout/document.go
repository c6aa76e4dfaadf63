// Package readout writes what was known of a campaign or an experiment at one of its looks as a file that never
// changes: a page of HTML without scripts, which a browser prints. Equal data are equal bytes.
package readout

import (
	"bytes"
	_ "embed" // the template
	"encoding/json"
	"fmt"
	"html/template"
	"strings"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/documents"
)

//go:embed readout.html
var readoutHTML string

// htmlTemplate escapes every text, because names, notes and comments are user input.
var htmlTemplate = template.Must(template.New("readout").Option("missingkey=error").Parse(readoutHTML))

// Document is what a readout says, in words. Its fields are in the order of the page.
type Document struct {
	AccountID int64
	Subject   schema.Subject

	Logo       Image
	Website    string // domain
	Period     string // of the visitors, such as look 3, until 2026-11-22
	Name       string
	Hypothesis string
	Facts      []string // owner, tags, plan

	Answer     Answer
	Variations []Variation
	Pictures   []Image // of the variations
	Metric     string  // of the variations
	TestedNote string
	Why        []Effect
	WhyNote    string
	Looks      []Look
	LooksNote  string
	IsBayesian bool
	Checks     []Check
	Segments   *Segments // nil: nothing is to be said
	Comment    []string  // paragraphs
	Log        []Entry
	Earlier    int // entries of the log that are not shown
}

// The tones of a text or a bar.
const (
	toneGood = "good"
	toneBad  = "bad"
	toneNone = "none"
)

// Answer is the decision with its figures.
type Answer struct {
	Label, Tone, Text string
	Decided           string // when; empty: nothing is decided
	Done              string // what people did
	Figures           []Figure
}

// Figure is a number with its name and its interval.
type Figure struct{ Name, Value, More string }

// Image is a stored picture. The address is no part of what identifies the readout, because the id is.
type Image struct {
	ID      string       // empty: there is none
	Name    string       // of the variation
	Address template.URL `json:"-"` // data:, with the bytes
}

// Variation is a row of what was tested.
type Variation struct{ Name, Share, Visitors, Value string }

// Effect is a row of the scorecard for a treatment, or of a segment.
type Effect struct {
	Name, Role, Variation   string
	Lift, Interval          string
	Bar                     *Bar // nil: there is no estimate
	Verdict, Tone, Visitors string
}

// Look is a row of the looks.
type Look struct{ Number, Date, Visitors, Variation, Lift, Interval, Z, Bound, P, Chance, Decides string }

// Check is a sentence about the validity of the data.
type Check struct {
	IsPassed bool
	Text     string
}

// Segments are the effects by device.
type Segments struct {
	Text string
	Rows []Effect
}

// Entry is an entry of the log.
type Entry struct{ Date, By, Text string }

// Foot says where a readout comes from. It is no part of what identifies the readout.
type Foot struct {
	ID          string
	Release     string
	MadeAt      time.Time
	Accepted    time.Time // events that were accepted until then are in it
	Address     string    // of the readout
	Predecessor string    // id of the readout of the same look that was made before; empty: none
}

// ID returns the id of the readout: a hash of what it says and of its template. attempt is the number of documents with
// the same content that were withdrawn.
func (d *Document) ID(attempt int) (string, error) {
	text, err := json.Marshal(d)
	if err != nil {
		return "", fmt.Errorf("encode the readout: %w", err)
	}
	return documents.NewID([]byte(readoutHTML), text, fmt.Append(nil, attempt)), nil
}

// Render returns the page.
func (d *Document) Render(foot *Foot) ([]byte, error) {
	var page bytes.Buffer
	err := htmlTemplate.Execute(&page, struct {
		*Document
		Foot             *Foot
		MadeAt, Accepted string
	}{d, foot, minuteOf(foot.MadeAt), minuteOf(foot.Accepted)})
	if err != nil {
		return nil, fmt.Errorf("write the readout: %w", err)
	}
	return page.Bytes(), nil
}

// minuteOf writes a time in UTC.
func minuteOf(at time.Time) string { return at.UTC().Format("2006-01-02 15:04 UTC") }

// dayOf writes the day of a time in UTC.
func dayOf(at time.Time) string { return at.UTC().Format(time.DateOnly) }

// lastDay writes the last day of a period that ends at a time.
func lastDay(end time.Time) string { return dayOf(end.Add(-time.Millisecond)) }

// splitParagraphs splits a text at blank lines. Other line feeds stay.
func splitParagraphs(text string) (all []string) {
	var open []string
	for _, line := range append(strings.Split(strings.ReplaceAll(text, "\r", ""), "\n"), "") {
		if strings.TrimSpace(line) != "" {
			open = append(open, line)
			continue
		}
		if len(open) > 0 {
			all = append(all, strings.Join(open, "\n"))
			open = nil
		}
	}
	return all
}
