package notes_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/faults"
	"lifthouse/schema/notes"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

func TestMain(m *testing.M) { schematest.Main(m) }

var (
	campaign = schema.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 12}
	website  = schema.Subject{WebsiteID: 1, Kind: schema.SubjectNone}
	noon     = time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)
)

// newNote returns a valid annotation.
func newNote(of schema.Subject, text string) notes.Note {
	return notes.Note{AccountID: 1, Subject: of, By: "Ada", Kind: notes.Annotation, StartsAt: &noon, Text: text}
}

func TestFaultsOfNotes(t *testing.T) {
	before := noon.Add(-time.Second)
	tooEarly := time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		change func(*notes.Note)
		want   []string
	}{
		"none":     {func(*notes.Note) {}, nil},
		"newlines": {func(n *notes.Note) { n.Text = "a\nb" }, nil},
		"longest":  {func(n *notes.Note) { n.Text = strings.Repeat("ü", notes.MaxText) }, nil},
		"too long": {
			func(n *notes.Note) { n.Text = strings.Repeat("ü", notes.MaxText+1) }, []string{"text: at most 2048"},
		},
		"empty":          {func(n *notes.Note) { n.Text = " \n" }, []string{"text: 1 to 2048"}},
		"NUL":            {func(n *notes.Note) { n.Text = "a\x00b" }, []string{"text: no control characters"}},
		"not UTF-8":      {func(n *notes.Note) { n.Text = "\xff" }, []string{"text: must be UTF-8"}},
		"kind":           {func(n *notes.Note) { n.Kind = "idea" }, []string{"kind: must be one of note, annotation"}},
		"no time":        {func(n *notes.Note) { n.StartsAt = nil }, []string{"startsAt: must be set"}},
		"a note's time":  {func(n *notes.Note) { n.Kind = notes.Plain }, []string{"startsAt: a note has no time"}},
		"ends before":    {func(n *notes.Note) { n.EndsAt = &before }, []string{"endsAt: must be after startsAt"}},
		"ends at once":   {func(n *notes.Note) { n.EndsAt = &noon }, []string{"endsAt: must be after startsAt"}},
		"too early":      {func(n *notes.Note) { n.StartsAt = &tooEarly }, []string{"startsAt: must be in a year from 1970"}},
		"link":           {func(n *notes.Note) { n.Link = "https://example.com/a?b=c#d" }, nil},
		"script":         {func(n *notes.Note) { n.Link = "javascript:alert(1)" }, []string{"link: must be an address"}},
		"http":           {func(n *notes.Note) { n.Link = "http://example.com" }, []string{"link: must be an address"}},
		"no host":        {func(n *notes.Note) { n.Link = "https:///a" }, []string{"link: must be an address"}},
		"user":           {func(n *notes.Note) { n.Link = "https://a:b@example.com" }, []string{"link: must have no user"}},
		"line in a link": {func(n *notes.Note) { n.Link = "https://example.com/\na" }, []string{"link: must be an address"}},
		"long link": {
			func(n *notes.Note) { n.Link = "https://example.com/" + strings.Repeat("a", notes.MaxLink) },
			[]string{"link: must have at most 2048 bytes"},
		},
		"all": {
			func(n *notes.Note) { *n = notes.Note{Kind: "x", Text: strings.Repeat("\x01", 3000), Link: "ftp://a"} },
			[]string{"kind: ", "text: at most 2048", "text: no control", "link: "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNote(campaign, "The price was raised.")
			test.change(&n)
			found := n.FindFaults()
			must.Equal(t, len(found), len(test.want), "%v", found)
			for i, want := range test.want {
				field, detail, _ := strings.Cut(want, ": ")
				check.Equal(t, found[i].Name, field)
				check.Contains(t, found[i].Detail, detail, want)
				check.That(t, len(found[i].Value) < 200, "a value of %d bytes", len(found[i].Value))
			}
		})
	}
}

func TestNotesAreAddedAndWithdrawn(t *testing.T) {
	n := notes.New(schematest.OpenMigrated(t))
	end := noon.Add(time.Hour)
	first := newNote(campaign, "First")
	first.EndsAt = &end
	first.Link = "https://example.com"
	first = must.Get(n.AddNote(t.Context(), first, nil))(t)
	second := must.Get(n.AddNote(t.Context(),
		notes.Note{AccountID: 1, Subject: website, By: "Bo", Kind: notes.Plain, Text: "Second"}, nil))(t)
	byID := func(website int64) map[string]notes.Note {
		found := map[string]notes.Note{}
		for _, note := range must.Get(n.ReadNotes(t.Context(), 1, website))(t) {
			found[note.ID] = note
		}
		return found
	}
	check.That(t, reflect.DeepEqual(byID(0)[first.ID], first), "%+v, want %+v", byID(0)[first.ID], first)
	check.That(t, reflect.DeepEqual(byID(1)[second.ID], second), "%+v, want %+v", byID(1)[second.ID], second)
	check.Equal(t, len(byID(2)), 0, "notes of another website")
	check.Equal(t, len(must.Get(n.ReadNotes(t.Context(), 2, 0))(t)), 0, "notes of another account")

	for name, of := range map[string][2]int64{"another account": {2, 0}, "another website": {1, 2}} {
		found := must.Get(n.WithdrawNote(t.Context(), of[0], of[1], first.ID, "Eve"))(t)
		check.Equal(t, found, false, name)
	}
	for _, by := range []string{"Ada", "Bo"} { // the second time, nothing changes
		check.Equal(t, must.Get(n.WithdrawNote(t.Context(), 1, 1, first.ID, by))(t), true, by)
	}
	withdrawn := byID(0)[first.ID]
	must.That(t, withdrawn.WithdrawnAt != nil, "the note stands")
	check.Equal(t, withdrawn.WithdrawnBy, "Ada")
	check.Equal(t, withdrawn.Text, "First", "what was withdrawn")
	check.That(t, byID(0)[second.ID].WithdrawnAt == nil, "another note was withdrawn")
}

// TestTooManyNotes fills a subject. The fault stands beside those that were found before, and nothing is stored.
func TestTooManyNotes(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	n := notes.New(conn)
	last := must.Get(n.AddNote(t.Context(), newNote(campaign, "Last"), nil))(t)
	must.OK(t, conn.Exec(t.Context(), `INSERT INTO notes
		SELECT * EXCEPT number REPLACE (concat('note_', toString(number)) AS note_id)
		FROM notes CROSS JOIN numbers(999) AS copies`))
	earlier := faults.List{{Name: "text", Detail: "is wrong"}}
	_, err := n.AddNote(t.Context(), newNote(campaign, "One more"), earlier)
	var found faults.List
	must.That(t, errors.As(err, &found), "%v", err)
	must.Equal(t, len(found), 2, "%v", found)
	check.Equal(t, found[1].String(), `campaignId: "12": has 1000 notes, and no more are allowed: withdraw one first`)
	check.Equal(t, len(must.Get(n.ReadNotes(t.Context(), 1, 0))(t)), notes.MaxStanding, "notes")
	must.Get(n.AddNote(t.Context(), newNote(website, "Of the website"), nil))(t)
	must.Get(n.WithdrawNote(t.Context(), 1, 0, last.ID, "Ada"))(t)
	must.Get(n.AddNote(t.Context(), newNote(campaign, "One more"), nil))(t)
}

// TestCopiedNotes copies twice, with a withdrawal in between.
func TestCopiedNotes(t *testing.T) {
	from := schematest.OpenMigrated(t)
	theirs := notes.New(from)
	kept := must.Get(theirs.AddNote(t.Context(), newNote(campaign, "Kept"), nil))(t)
	taken := must.Get(theirs.AddNote(t.Context(), newNote(campaign, "Taken back"), nil))(t)
	ours := notes.New(schematest.OpenMigrated(t))
	check.Equal(t, must.Get(ours.CopyFrom(t.Context(), from, []int64{1, 2}))(t), 2, "notes")
	must.Get(theirs.WithdrawNote(t.Context(), 1, 0, taken.ID, "Ada"))(t)
	check.Equal(t, must.Get(ours.CopyFrom(t.Context(), from, []int64{1, 2}))(t), 0, "notes of the second time")
	got, want := must.Get(ours.ReadNotes(t.Context(), 1, 0))(t), must.Get(theirs.ReadNotes(t.Context(), 1, 0))(t)
	check.That(t, reflect.DeepEqual(got, want), "%+v, want %+v", got, want)
	check.That(t, kept.ID != taken.ID, "two notes have one id")
}
