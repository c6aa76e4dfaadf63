package readout_test

import (
	"bytes"
	"context"
	"image"
	"image/jpeg"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lifthouse/engine"
	"lifthouse/engine/facts"
	"lifthouse/engine/readout"
	"lifthouse/engine/source"
	"lifthouse/engine/tables"
	"lifthouse/engine/watch"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/documents"
	"lifthouse/schema/notes"
	"lifthouse/schema/outbox"
	"lifthouse/schema/pictures"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/net/html"
)

func TestMain(m *testing.M) { schematest.Main(m) }

// hostile is a name that is markup, a script and a style.
const hostile = `</title></style><script>alert(1)</script><img src=x onerror=alert(1)> "'&{{.}}` + "`"

// shop is a store with a campaign of three weeks.
type shop struct {
	t         *testing.T
	conn      driver.Conn
	catalogue *catalogue.Catalogue
	first     time.Time
	ids       uint64
	*server
}

// server is a server of a store, with its maker of readouts.
type server struct {
	facts    facts.Shards
	recorder *watch.Recorder
	*readout.Maker
}

var campaign = schema.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 12}

// openServer returns a server of the store, which is the only one or not.
func (s *shop) openServer(alone bool) *server {
	s.t.Helper()
	shards := facts.Shards{facts.NewRefresher(s.conn, alone)}
	must.OK(s.t, shards.OpenFacts(s.t.Context()))
	e := engine.New(s.conn, s.catalogue, source.DefaultLimits, shards)
	box, summaries := outbox.New(s.conn), watch.NewSummaries(e, s.catalogue)
	one := &server{facts: shards, recorder: watch.NewRecorder(e, s.catalogue, box, summaries)}
	one.Maker = &readout.Maker{Release: "1.0.0", PublicURL: "https://lifthouse.example.com", Reader: tables.Reader{
		Engine: e, Summaries: summaries, Catalogue: s.catalogue, Outbox: box, Notes: notes.New(s.conn),
		Documents: documents.New(s.conn),
	}}
	one.recorder.MakeReadout = one.MakeOwn
	return one
}

// newShop returns a shop whose looks are recorded.
func newShop(t *testing.T, name func(string) string) *shop {
	t.Helper()
	s := openShop(t, name, true)
	must.OK(t, s.facts.RefreshFacts(t.Context()))
	s.recorder.RecordDue(t.Context(), s.first.AddDate(0, 0, 24))
	return s
}

// openShop stores 22 days of two treatments, which convert 6 and 3 visitors more of 400 a day than control. Names are
// as name gives them. The shop has one server, or one of several.
func openShop(t *testing.T, name func(string) string, alone bool) *shop {
	t.Helper()
	conn := schematest.OpenMigrated(t)
	c := must.Get(catalogue.Open(t.Context(), conn))(t)
	s := &shop{t: t, conn: conn, catalogue: c, first: time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -30)}
	site := catalogue.Website{
		ID: 1, Domain: "shop.example.com", Currency: "EUR",
		Goals: []catalogue.Goal{{ID: 3, Name: name("Purchase")}, {ID: 4, Name: name("Support request")}},
		Campaigns: []catalogue.Campaign{{
			ID: 12, Name: name("Free delivery banner"), Type: "experiment", TargetMode: "live", PrimaryGoalID: 3,
			Methodology: catalogue.Frequentist, ControlShare: 34, SignificanceLevel: 95, Power: 80, MDE: 20,
			Hypothesis: name("Free delivery makes more visitors buy."), Owner: name("Ada"),
			Tags: []string{name("checkout")[:min(len(name("checkout")), 64)]},
			Goals: &catalogue.Goals{Guardrails: []catalogue.Guardrail{
				{GoalID: 4, Metric: "goalConversionRate", Margin: 50, Direction: catalogue.Down},
			}},
			Variations: []catalogue.Variation{
				{ID: 1, Name: name("Banner"), Share: 33, Order: 1}, {ID: 2, Name: name("Badge"), Share: 33, Order: 2},
			},
			Initial: catalogue.Initial{Active: true, StartDate: &catalogue.Date{Time: s.first.Add(-time.Hour)}},
		}},
	}
	file := catalogue.File{Accounts: []catalogue.Account{{ID: 1, Name: "a", Websites: []catalogue.Website{site}}}}
	must.Get(c.ApplyFile(catalogue.WithAuthor(t.Context(), name("Ada")), file, false))(t)
	s.server = s.openServer(alone)
	for day := range 22 {
		s.storeDay(day, s.first.AddDate(0, 0, day).Add(23*time.Hour), 40, 46, 43)
	}
	return s
}

// storeDay stores a day with the converted visitors of each variation.
func (s *shop) storeDay(day int, accepted time.Time, converted ...int) {
	s.t.Helper()
	var events []schema.Event
	for variation, n := range converted {
		for visitor := range 400 {
			s.ids++
			view := schema.Event{
				EventID: 4 * s.ids, VisitorID: s.ids, WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 12,
				Time:        s.first.AddDate(0, 0, day).Add(time.Hour + time.Duration(visitor)*time.Second),
				VariationID: int64(variation),
				Kind:        schema.KindView,
				Attributes:  schema.Attributes{Device: []string{"desktop", "mobile"}[s.ids%2]},
			}
			events = append(events, view)
			for goal, has := range map[int64]bool{3: visitor < n, 4: visitor%40 == 0} {
				if has {
					e := view
					e.EventID = view.EventID + uint64(goal) - 2
					e.Kind = schema.KindGoal
					e.GoalID = goal
					e.Time = view.Time.Add(time.Minute)
					events = append(events, e)
				}
			}
		}
	}
	must.OK(s.t, schema.InsertEvents(s.t.Context(), s.conn, events, accepted))
}

func (s *shop) owned() *catalogue.AccountResources { return s.catalogue.Snapshot().AccountResources(1) }

// readSources returns what a readout of a look is made from.
func (s *shop) readSources(look *int, comment string) readout.Sources {
	s.t.Helper()
	at := must.Get(s.Engine.ReadAtLook(s.t.Context(), s.owned(), campaign, look))(s.t)
	return readout.Sources{AtLook: at, Subject: campaign, Owned: s.owned(), Comment: comment}
}

// makeReadout makes a readout.
func (s *shop) makeReadout(asked readout.Asked) (of documents.Document, isNew bool) {
	s.t.Helper()
	of, isNew, err := s.MakeReadout(s.t.Context(), s.owned(), campaign, asked)
	must.OK(s.t, err)
	return of, isNew
}

// readBody returns the page of a readout.
func (s *shop) readBody(of *documents.Document) string {
	s.t.Helper()
	return string(must.Get(s.Documents.ReadBody(s.t.Context(), of))(s.t))
}

func keepName(text string) string { return text }

// textOf returns the text of a page without its style.
func textOf(t *testing.T, page string) string {
	t.Helper()
	document := must.Get(html.Parse(strings.NewReader(page)))(t)
	var text strings.Builder
	for n := range document.Descendants() {
		if n.Type == html.TextNode && n.Parent.Data != "style" {
			text.WriteString(n.Data + " ")
		}
	}
	return strings.Join(strings.Fields(text.String()), " ")
}

// TestReadouts makes readouts of one shop.
func TestReadouts(t *testing.T) {
	s := newShop(t, keepName)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *shop)
	}{
		{"have their content", checkContent},
		{"are equal bytes", checkEqualBytes},
		{"have hostile names", checkNames},
		{"do not change", checkSinceThen},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.t = t
			test.run(t, s)
		})
	}
}

// checkContent makes a readout and reads what it says.
func checkContent(t *testing.T, s *shop) {
	t.Helper()
	must.Get(s.Notes.AddNote(t.Context(), notes.Note{
		AccountID: 1, Subject: campaign, By: "Ben", Kind: notes.Plain, Text: "A carrier had an outage.",
	}, nil))(t)
	started := time.Now()
	of, isNew := s.makeReadout(readout.Asked{By: "Ada", Text: "First paragraph,\nsame.\n\n \nSecond <b>one</b>."})
	t.Logf("made in %s", time.Since(started))
	check.That(t, isNew, "the readout is not new")
	page := s.readBody(&of)
	t.Logf("%d bytes", len(page))
	if folder := os.Getenv("LIFTHOUSE_READOUT"); folder != "" {
		must.OK(t, os.WriteFile(folder+"/readout.html", []byte(page), 0o600))
	}
	check.That(t, len(page) <= 60<<10, "%d bytes", len(page))
	text := textOf(t, page)
	last := -1
	for _, want := range []string{
		"Readout of look 3, until ", "shop.example.com", "Free delivery banner",
		"Free delivery makes more visitors buy.", "Owner Ada · #checkout · Planned for 28 days",
		"decided by the rule on", "Lift of goal conversion rate, Banner +15.0 %", "What was tested", "Banner 33 %",
		"Badge 33 %", "Why", "Goal conversion rate of Purchase", "guardrail: may rise by at most 50 %",
		"The looks", "Recorded by the server", "Can the numbers be trusted?", "The split is as configured", "By device",
		"Segments describe", "Comment", "First paragraph,", "Second <b>one</b>.", "Log", "A carrier had an outage.",
		"Ben",
		"Made by Lifthouse 1.0.0", of.ID, "https://lifthouse.example.com/readouts/" + of.ID,
	} {
		at := strings.Index(text[last+1:], want)
		if at < 0 {
			t.Fatalf("%q is missing or too early in:\n%s", want, text)
		}
		last += at
	}
	_, isNew = s.makeReadout(readout.Asked{By: "Ben", Text: "First paragraph,\nsame.\n\n \nSecond <b>one</b>."})
	check.Equal(t, isNew, false, "the same readout is new")
	started = time.Now()
	other, isNew := s.makeReadout(readout.Asked{By: "Ben", Text: "Another comment"})
	t.Logf("made in %s", time.Since(started))
	check.That(t, isNew, "another comment is not another readout")
	check.Contains(t, textOf(t, s.readBody(&other)), "It follows readout "+of.ID)
	must.Get(s.Documents.WithdrawReadout(t.Context(), 1, 0, other.ID, "Ada"))(t)
	again, isNew := s.makeReadout(readout.Asked{By: "Ben", Text: "Another comment"})
	check.That(t, isNew, "a readout that was withdrawn cannot be made again")
	check.That(t, again.ID != other.ID, "it has the id of the one that was withdrawn")
	first := 1
	earlier, _ := s.makeReadout(readout.Asked{Look: &first})
	check.Contains(t, textOf(t, s.readBody(&earlier)), "Readout of look 1, until ")
}

// checkEqualBytes writes the same readout in other time zones and with other numbers of threads.
func checkEqualBytes(t *testing.T, s *shop) {
	t.Helper()
	local := time.Local
	threads := runtime.GOMAXPROCS(0)
	t.Cleanup(func() {
		time.Local = local
		runtime.GOMAXPROCS(threads)
	})
	sources := s.readSources(nil, "Comment")
	write := func() []byte {
		d := readout.New(sources)
		at := time.Unix(1.8e9, 0)
		foot := readout.Foot{ID: must.Get(d.ID(0))(t), Release: "1", MadeAt: at, Accepted: at}
		return must.Get(d.Render(&foot))(t)
	}
	want := write()
	for i := range 100 {
		time.Local = time.FixedZone("far", 3600*(i%25-12))
		runtime.GOMAXPROCS(1 + i%4)
		if i%25 == 0 {
			sources = s.readSources(nil, "Comment")
		}
		got := write()
		must.That(t, bytes.Equal(got, want), "run %d differs", i)
	}
}

// checkNames names everything with markup. The page has no element that the template has not, and the names
// are in its text.
func checkNames(t *testing.T, plain *shop) {
	t.Helper()
	evil := newShop(t, func(name string) string { return name + hostile })
	elements := func(s *shop, comment string) (names []string, text string) {
		must.Get(s.Notes.AddNote(t.Context(), notes.Note{
			AccountID: 1, Subject: campaign, By: comment, Kind: notes.Plain, Text: comment,
		}, nil))(t)
		of, _ := s.makeReadout(readout.Asked{By: comment, Text: comment})
		page := s.readBody(&of)
		for n := range must.Get(html.Parse(strings.NewReader(page)))(t).Descendants() {
			if n.Type == html.ElementNode {
				names = append(names, n.Data)
				for _, a := range n.Attr {
					check.That(t, !strings.HasPrefix(a.Key, "on"), "attribute %s of %s", a.Key, n.Data)
				}
			}
		}
		return names, textOf(t, page)
	}
	must.Get(evil.Notes.AddNote(t.Context(), notes.Note{
		AccountID: 1, Subject: campaign, By: "Ben", Kind: notes.Plain, Text: "A carrier had an outage.",
	}, nil))(t)
	evil.makeReadout(readout.Asked{}) // the other shop has readouts, too
	want, _ := elements(plain, "harmless")
	got, text := elements(evil, hostile)
	check.Equal(t, strings.Join(got, " "), strings.Join(want, " "), "elements")
	check.That(t, strings.Count(text, hostile) >= 8, "the name is %d times in:\n%s", strings.Count(text, hostile), text)
}

// checkSinceThen makes a readout, and lets orders arrive late, a decision change, and the campaign be archived. The
// file stays as it is.
func checkSinceThen(t *testing.T, s *shop) {
	t.Helper()
	of, _ := s.makeReadout(readout.Asked{})
	before := s.readBody(&of)
	since := func() readout.Since {
		t.Helper()
		must.OK(t, s.facts.RefreshFacts(context.WithoutCancel(t.Context())))
		return must.Get(s.ReadSince(t.Context(), s.owned(), &of))(t)
	}
	check.Equal(t, since(), readout.Since{Text: "Nothing has changed since."})
	s.storeDay(3, time.Now(), 40, 60, 43)
	got := since()
	check.That(t, got.Changed, "%+v", got)
	want := regexp.MustCompile(`^Since then: events that arrived or changed later give look 3 a lift of ` +
		`[+-][\d.]+ %, not ` +
		`[+-][\d.]+ % \(Banner\)\. The decision stands\.$`)
	check.That(t, want.MatchString(got.Text), "%q", got.Text)
	check.Equal(t, s.readBody(&of), before, "the file")
	file := s.owned().CatalogueFile()
	file.Accounts[0].Websites[0].Campaigns = nil
	file.Prune = true
	must.Get(s.catalogue.ApplyFile(t.Context(), file, false))(t)
	check.Contains(t, since().Text, "archived")
}

// TestFaultsOfRequests checks what is asked, all of it at once.
func TestFaultsOfRequests(t *testing.T) {
	zero := 0
	asked := readout.Asked{Look: &zero, Text: strings.Repeat("ü", readout.MaxText+1) + "\x00"}
	found := asked.FindFaults()
	must.Equal(t, len(found), 3, "%v", found)
	check.Contains(t, found[0].String(), `look: "0": must be the number of a look`)
	check.Contains(t, found[1].Detail, "must have at most 4000 characters; it has 4002")
	check.Contains(t, found[2].Detail, "no control characters")
	asked = readout.Asked{Text: "\xff"}
	check.Contains(t, asked.FindFaults()[0].Detail, "must be UTF-8")
	asked = readout.Asked{Text: strings.Repeat("ü\n", readout.MaxText/2)}
	check.Equal(t, len(asked.FindFaults()), 0, "%v", asked.FindFaults())
}

// TestDecisionsHaveAReadout lets two servers record the look that decides at the same time. There is one readout, and
// the message has its id.
func TestDecisionsHaveAReadout(t *testing.T) {
	s := openShop(t, keepName, false)
	both := []*server{s.server, s.openServer(false)}
	var all sync.WaitGroup
	for _, one := range both {
		all.Go(func() {
			must.OK(t, one.facts.RefreshFacts(t.Context()))
			one.recorder.RecordDue(t.Context(), s.first.AddDate(0, 0, 24))
		})
	}
	all.Wait()
	made := must.Get(s.Documents.ReadDocuments(t.Context(), 1, 0, documents.Readout))(t)
	must.Equal(t, len(made), 1, "readouts")
	check.Equal(t, made[0].MadeBy, "", "who made it")
	check.Equal(t, made[0].Look, 3, "look")
	decisions := 0
	for _, m := range must.Get(s.Outbox.RecentMessages(t.Context(), 1, 0, 100))(t) {
		if m.Event == catalogue.EventDecisionChanged {
			decisions++
			check.Equal(t, m.Data.ReadoutID, made[0].ID, "readout of the message")
		}
	}
	check.That(t, decisions > 0, "no decision is reported")
	for _, one := range both {
		one.recorder.RecordDue(t.Context(), s.first.AddDate(0, 0, 25))
	}
	made = must.Get(s.Documents.ReadDocuments(t.Context(), 1, 0, documents.Readout))(t)
	check.Equal(t, len(made), 1, "readouts a day later")
	id := must.Get(s.MakeOwn(t.Context(), s.owned(), campaign))(t)
	check.Equal(t, id, made[0].ID, "a server that ended before it wrote the message makes the same")
}

// TestReadoutsHavePictures makes a readout of a campaign with a logo and five pictures of noise. It has them all, and
// less than 900 kB.
func TestReadoutsHavePictures(t *testing.T) {
	s := newShop(t, func(text string) string { return text })
	random := rand.NewChaCha8([32]byte{1})
	put := func() string {
		m := image.NewGray(image.Rect(0, 0, 1200, 1200))
		_, _ = random.Read(m.Pix) // never fails
		var sent bytes.Buffer
		must.OK(t, jpeg.Encode(&sent, m, nil))
		made, body, err := pictures.New(t.Context(), 1, "Ada", sent.Bytes())
		must.OK(t, err)
		stored, _, err := s.Documents.AddDocument(t.Context(), made, body)
		must.OK(t, err)
		return stored.ID
	}
	owned := *s.catalogue.Snapshot().AccountResources(1)
	plain, _, err := s.MakeReadout(t.Context(), &owned, campaign, readout.Asked{By: "Ada"})
	must.OK(t, err)
	owned.Logo = put()
	owned.Campaigns = maps.Clone(owned.Campaigns)
	of := owned.Campaigns[12]
	of.ControlPicture = put()
	of.Variations = append(slices.Clone(of.Variations), catalogue.Variation{ID: 8, Name: "Third"},
		catalogue.Variation{ID: 9, Name: "Fourth"}, catalogue.Variation{ID: 10, Name: "Fifth"})
	for i := range 4 {
		of.Variations[i].Picture = put()
	}
	of.Variations[4].Picture = strings.Repeat("0", 32) // is not stored
	owned.Campaigns[12] = of
	made, isNew, err := s.MakeReadout(t.Context(), &owned, campaign, readout.Asked{By: "Ada"})
	must.OK(t, err)
	check.That(t, isNew, "the readout is the one without pictures")
	check.That(t, made.ID != plain.ID, "the readout has the id of the one without pictures")
	page := string(must.Get(s.Documents.ReadBody(t.Context(), &made))(t))
	check.Equal(t, strings.Count(page, `src="data:image/jpeg;base64,`), 6, "pictures")
	for _, alt := range []string{"Logo", "Picture of Control", "Picture of Banner", "Picture of Fourth"} {
		check.Equal(t, strings.Count(page, `alt="`+alt+`"`), 1, alt)
	}
	check.That(t, len(page) < 900_000, "%d bytes", len(page))
	t.Log(len(page), "bytes")
}
