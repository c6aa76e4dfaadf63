package api_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"lifthouse/engine/tables"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/outbox"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

const (
	logPath   = "/v1/log"
	notesPath = "/v1/notes"
)

// loggedEntry is an entry of the log as a client reads it.
type loggedEntry struct {
	ID, By, Entry, Status, Name, Text, Link, WithdrawnBy string
	At                                                   time.Time
	WebsiteID, CampaignID, WidgetID, ExperimentID        int64
	VariationID                                          *int64
	StartsAt, EndsAt, WithdrawnAt                        *time.Time
}

// said returns what a naive reading of the tables knows of an entry.
func (e *loggedEntry) said() string {
	text, _, _ := strings.Cut(e.Text, ", with ") // the visitors of a look
	return fmt.Sprintln(e.At.UnixMilli(), e.Entry, e.WebsiteID, e.CampaignID, e.WidgetID, e.ExperimentID, e.By, text,
		e.WithdrawnBy)
}

// log returns the entries of a request.
func (s *server) log(query string) []loggedEntry {
	s.t.Helper()
	return must.JSON[[]loggedEntry](s.t, s.Get(logPath+query).Send().RequireStatus(http.StatusOK).Text)
}

// note adds a note and returns its entry.
func (s *server) note(fields string) loggedEntry {
	s.t.Helper()
	response := s.Post(notesPath, fields).Type("application/json").Send().RequireStatus(http.StatusCreated)
	check.Contains(s.t, response.Header.Get("Location"), notesPath+"/note_")
	return must.JSON[loggedEntry](s.t, response.Text)
}

// newLoggedShops returns a server in whose log each kind of entries is.
func newLoggedShops(t *testing.T) *server {
	t.Helper()
	s := newShops(t)
	s.Post("/v1/campaigns/41/stop", "").Send().RequireStatus(http.StatusOK)
	s.Post("/v1/campaigns/41/start", "").Send().RequireStatus(http.StatusOK)
	s.Post("/v1/widgets/7/start", "").Send().RequireStatus(http.StatusOK)
	for _, body := range []string{`{"outcome":"dropped","note":"too slow"}`, `{"outcome":"shipped","variationId":1}`} {
		s.Request(http.MethodPut, "/v1/campaigns/31/outcome", body).Type("application/json").Send().
			RequireStatus(http.StatusOK)
	}
	s.apply(shopWith("{id: 51, name: Never, controlShare: 40, variations: [{id: 1, name: New, share: 60}]}"))
	s.apply(shopWith("{id: 51, name: Never, controlShare: 50, variations: [{id: 1, name: New, share: 50}], " +
		"plannedDays: 70}, {id: 52, name: Gone}"))
	s.Post("/v1/campaigns/52/start", "").Send().RequireStatus(http.StatusOK)
	s.archiveCampaign(52)
	of41 := schema.Subject{WebsiteID: 2, Kind: schema.SubjectCampaign, ID: 41}
	s.recordLooks(of41)
	of7 := schema.Subject{WebsiteID: 1, Kind: schema.SubjectWidget, ID: 7, ExperimentID: 2}
	must.Get(s.outbox.WriteMessages(t.Context(), []outbox.Message{
		outbox.NewMessage(outbox.MessageID(outbox.NewIdentity(1, "decision")), 1, catalogue.EventDecisionChanged,
			of41, "ship", time.Now(),
			outbox.Data{Text: "Ship New.", Decision: json.RawMessage(`{"status":"ship","variationId":1}`)}),
		outbox.NewMessage(outbox.MessageID(outbox.NewIdentity(1, "check")), 1, catalogue.EventCheckFailed,
			of7, "sampleRatio", time.Now(), outbox.Data{Text: "The split is not as declared."}),
		outbox.NewMessage(outbox.MessageID(outbox.NewIdentity(1, "followUp")), 1, catalogue.EventFollowUp,
			of41, "90d", time.Now(), outbox.Data{Text: "Value per visitor within 90 days is more."}),
	}))(t)
	s.note(`{"campaignId":31,"kind":"note","text":"Tried on phones first.\nThen everywhere.",` +
		`"link":"https://example.com/a"}`)
	s.note(`{"websiteId":2,"kind":"annotation","startsAt":"2026-11-18T00:00:00+01:00",` +
		`"text":"The shop was down"}`)
	s.note(`{"widgetId":7,"experimentId":2,"kind":"annotation","startsAt":"2026-11-18T00:00:00Z",` +
		`"endsAt":"2026-11-19T00:00:00Z","text":"On television"}`)
	s.Post("/v1/campaigns/41/readouts", "").Send().RequireStatus(http.StatusCreated)
	taken := s.note(`{"widgetId":7,"kind":"note","text":"A mistake"}`)
	s.Request(http.MethodDelete, notesPath+"/"+taken.ID, "").Send().RequireStatus(http.StatusNoContent)
	return s
}

// archiveCampaign archives a campaign of account 1.
func (s *server) archiveCampaign(id int64) {
	s.t.Helper()
	file := s.catalogue.Snapshot().AccountResources(1).CatalogueFile()
	for i := range file.Accounts[0].Websites {
		site := &file.Accounts[0].Websites[i]
		site.Campaigns = slices.DeleteFunc(site.Campaigns, func(c catalogue.Campaign) bool { return c.ID == id })
	}
	file.Prune = true
	must.Get(s.catalogue.ApplyFile(s.t.Context(), file, false))(s.t)
}

// naiveLog folds the log of account 1 from the tables, one at a time. Its campaigns have only one question each.
func (s *server) naiveLog() (all []loggedEntry) {
	s.t.Helper()
	return slices.Concat(s.naiveChanges(), s.naiveMessages(), s.naiveLooks(), s.naiveNotes(), s.naiveReadouts())
}

// naiveState is what the log knows of a state.
type naiveState struct {
	Active       bool
	ShareHistory map[string][]struct{ Shares map[string]int }
	PlanHistory  map[string][]json.RawMessage
	Outcomes     map[string]struct {
		Outcome, Note string
	}
}

// naiveChanges compares each row of the audit log with the one before it of the same campaign or widget.
func (s *server) naiveChanges() (all []loggedEntry) {
	type key struct {
		kind string
		id   int64
	}
	type row struct {
		at       time.Time
		by, body string
	}
	websites := map[key]int64{}
	experiments := map[key][]int64{}
	states := map[key][]row{}
	archived := map[key]row{}
	rows := must.Get(s.conn.Query(s.t.Context(), `SELECT changed_at, changed_by, toString(kind), id, toString(facet),
		archived, body FROM audit WHERE account_id = 1 AND kind IN ('campaign', 'widget') ORDER BY version`))(s.t)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var k key
		var r row
		var part string
		var isArchived bool
		must.OK(s.t, rows.Scan(&r.at, &r.by, &k.kind, &k.id, &part, &isArchived, &r.body))
		if part == "state" {
			states[k] = append(states[k], r)
			continue
		}
		found := must.JSON[struct {
			WebsiteID   int64
			Experiments []struct{ ID int64 }
		}](s.t, r.body)
		websites[k] = found.WebsiteID
		experiments[k] = nil
		for _, e := range found.Experiments {
			experiments[k] = append(experiments[k], e.ID)
		}
		if isArchived {
			archived[k] = r
		}
	}
	must.OK(s.t, rows.Err())
	add := func(k key, experiment int64, r row, entry, text string) {
		e := loggedEntry{At: r.at, By: r.by, Entry: entry, WebsiteID: websites[k], Text: text, ExperimentID: experiment}
		if k.kind == "campaign" {
			e.CampaignID = k.id
		} else {
			e.WidgetID = k.id
		}
		all = append(all, e)
	}
	for k := range websites {
		subjects := experiments[k]
		if k.kind == "campaign" {
			subjects = []int64{0}
		}
		for _, experiment := range subjects {
			if r, is := archived[k]; is {
				add(k, experiment, r, "archived", "It was archived.")
			}
			var before naiveState
			for i, r := range states[k] {
				now := must.JSON[naiveState](s.t, r.body)
				id := fmt.Sprint(experiment)
				if now.Active != before.Active {
					entry := map[bool]string{true: "started", false: "stopped"}[now.Active]
					add(k, experiment, r, entry, "It was "+entry+".")
				}
				if history := now.ShareHistory[id]; i > 0 && len(history) > len(before.ShareHistory[id]) {
					shares := history[len(history)-1].Shares
					add(k, experiment, r, "shares", fmt.Sprintf("The shares are now %d of variation 0, %d of variation 1.",
						shares["0"], shares["1"]))
				}
				if i > 0 && len(now.PlanHistory[id]) > len(before.PlanHistory[id]) {
					add(k, experiment, r, "plan", "The plan was changed.")
				}
				if outcome := now.Outcomes[id]; outcome != before.Outcomes[id] {
					text := outcome.Note
					if text == "" {
						text = "The outcome is " + outcome.Outcome + "."
					}
					add(k, experiment, r, "outcome", text)
				}
				before = now
			}
		}
	}
	return all
}

// naiveMessages reads the decisions and the checks.
func (s *server) naiveMessages() (all []loggedEntry) {
	rows := must.Get(s.conn.Query(s.t.Context(), `SELECT recorded_at, event, website_id, subject, subject_id,
		experiment_id, JSONExtractString(body, 'text') FROM messages WHERE account_id = 1`))(s.t)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var e loggedEntry
		var subject string
		var id int64
		must.OK(s.t, rows.Scan(&e.At, &e.Entry, &e.WebsiteID, &subject, &id, &e.ExperimentID, &e.Text))
		e.Entry, _, _ = strings.Cut(e.Entry, ".")
		if e.WidgetID = id; subject == "campaign" {
			e.WidgetID = 0
			e.CampaignID = id
		}
		all = append(all, e)
	}
	must.OK(s.t, rows.Err())
	return all
}

// naiveLooks reads the looks at the primary metrics.
func (s *server) naiveLooks() (all []loggedEntry) {
	rows := must.Get(s.conn.Query(s.t.Context(), `SELECT recorded_at, website_id, subject_id, look, ended_at
		FROM looks
		WHERE kind = 'look' AND goal_id IN (3, 9) AND metric = 'goalConversionRate' AND subject = 'campaign'`))(s.t)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		e := loggedEntry{Entry: "look"}
		var number uint32
		var end time.Time
		must.OK(s.t, rows.Scan(&e.At, &e.WebsiteID, &e.CampaignID, &number, &end))
		e.Text = fmt.Sprintf("Look %d until %s", number, end.Add(-time.Second).Format(time.DateOnly))
		all = append(all, e)
	}
	must.OK(s.t, rows.Err())
	return all
}

// naiveNotes reads the notes, and then who withdrew them.
func (s *server) naiveNotes() (all []loggedEntry) {
	rows := must.Get(s.conn.Query(s.t.Context(), `SELECT note_id, at, by, toString(kind), website_id, subject,
		subject_id, experiment_id, text, withdrawn FROM notes WHERE account_id = 1 ORDER BY withdrawn`))(s.t)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var e loggedEntry
		var subject string
		var id int64
		var withdrawn bool
		must.OK(s.t, rows.Scan(&e.ID, &e.At, &e.By, &e.Entry, &e.WebsiteID, &subject, &id, &e.ExperimentID, &e.Text,
			&withdrawn))
		if withdrawn {
			for i := range all {
				if all[i].ID == e.ID {
					all[i].WithdrawnBy = e.By
				}
			}
			continue
		}
		switch subject {
		case "campaign":
			e.CampaignID = id
		case "widget":
			e.WidgetID = id
		}
		all = append(all, e)
	}
	must.OK(s.t, rows.Err())
	return all
}

func (s *server) naiveReadouts() (all []loggedEntry) {
	rows := must.Get(s.conn.Query(s.t.Context(), `SELECT document_id, made_at, made_by, website_id, subject_id,
		concat('A readout of look ', toString(look), ' was made.') FROM documents WHERE account_id = 1`))(s.t)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		e := loggedEntry{Entry: "readout"}
		must.OK(s.t, rows.Scan(&e.ID, &e.At, &e.By, &e.WebsiteID, &e.CampaignID, &e.Text))
		all = append(all, e)
	}
	must.OK(s.t, rows.Err())
	return all
}

// TestLogEqualsANaiveOne compares the log with one that is folded from the tables, for random parameters, in pages and
// as lines.
func TestLogEqualsANaiveOne(t *testing.T) {
	s := newLoggedShops(t)
	naive := s.naiveLog()
	kinds := map[string]bool{}
	for i := range naive {
		kinds[naive[i].Entry] = true
	}
	check.Equal(t, len(kinds), len(tables.EntryKinds), "kinds of entries: %v", kinds)
	middle := naive[len(naive)/2].At
	r := rand.New(rand.NewPCG(82, 2)) //nolint:gosec // a test
	for range tier.Of(12, 300) {
		asked := url.Values{}
		selects := []func(e *loggedEntry) bool{}
		restrict := func(name, value string, is func(e *loggedEntry) bool) {
			if r.IntN(3) == 0 {
				asked.Set(name, value)
				selects = append(selects, is)
			}
		}
		of := func(website int64, is func(e *loggedEntry) bool) func(e *loggedEntry) bool {
			return func(e *loggedEntry) bool {
				isWhole := e.CampaignID == 0 && e.WidgetID == 0
				return e.WebsiteID == website && (isWhole || is(e))
			}
		}
		kind := tables.EntryKinds[r.IntN(len(tables.EntryKinds))]
		restrict("entry", kind, func(e *loggedEntry) bool { return e.Entry == kind })
		restrict("since", middle.Format(time.RFC3339Nano), func(e *loggedEntry) bool { return !e.At.Before(middle) })
		switch r.IntN(4) {
		case 0:
			restrict("websiteId", "2", func(e *loggedEntry) bool { return e.WebsiteID == 2 })
		case 1:
			restrict("campaignId", "41", of(2, func(e *loggedEntry) bool { return e.CampaignID == 41 }))
		case 2:
			restrict("widgetId", "7", of(1, func(e *loggedEntry) bool { return e.WidgetID == 7 }))
		}
		var want []string
		for i := range naive {
			if !slices.ContainsFunc(selects, func(is func(*loggedEntry) bool) bool { return !is(&naive[i]) }) {
				want = append(want, naive[i].said())
			}
		}
		s.checkLog(asked, 1+r.IntN(5), want)
	}
}

// checkLog compares the entries of a request with those that are expected in any order: as an array, as lines, and in
// pages.
func (s *server) checkLog(asked url.Values, limit int, want []string) {
	s.t.Helper()
	slices.Sort(want)
	compare := func(how string, entries []loggedEntry) {
		s.t.Helper()
		check.That(s.t, slices.IsSortedFunc(entries, func(a, b loggedEntry) int { return b.At.Compare(a.At) }),
			"%s %v: not the latest first", how, asked)
		var got []string
		for i := range entries {
			got = append(got, entries[i].said())
		}
		slices.Sort(got)
		check.Equal(s.t, strings.Join(got, ""), strings.Join(want, ""), how+" "+asked.Encode())
	}
	asked.Set("limit", "1000")
	compare("array", s.log("?"+asked.Encode()))
	lines := s.Get(logPath+"?"+asked.Encode()).Header("Accept", "application/x-ndjson").Send()
	var read []loggedEntry
	for line := range strings.Lines(lines.Text) {
		read = append(read, must.JSON[loggedEntry](s.t, line))
	}
	compare("lines", read)
	asked.Set("limit", fmt.Sprint(limit))
	var paged []loggedEntry
	for path := logPath + "?" + asked.Encode(); path != ""; {
		response := s.Get(path).Send().RequireStatus(http.StatusOK)
		page := must.JSON[[]loggedEntry](s.t, response.Text)
		check.That(s.t, len(page) <= limit, "a page of %d entries", len(page))
		check.Equal(s.t, response.Header.Get("X-Total-Count"), fmt.Sprint(len(want)), path)
		paged = append(paged, page...)
		path, _, _ = strings.Cut(strings.TrimPrefix(response.Header.Get("Link"), "<"), ">")
	}
	compare("pages", paged)
}

// TestNotesRefuseAllFaultsAtOnce sends wrong notes. Nothing is stored.
func TestNotesRefuseAllFaultsAtOnce(t *testing.T) {
	s := newShops(t)
	for body, wants := range map[string][]string{
		`{}`: {`"name":"kind"`, `"name":"text"`, `"name":"websiteId"`},
		`{"campaignId":31,"kind":"note","text":"` + strings.Repeat("x", 2049) + `"}`: {
			`"name":"text"`, `must have at most 2048 characters; it has 2049`,
		},
		`{"campaignId":31,"widgetId":7,"kind":"idea","text":"a\u0000b","link":"javascript:alert(1)","colour":1,` +
			`"startsAt":"yesterday","endsAt":"2026-11-18"}`: {
			`"name":"widgetId"`, `"name":"kind"`, `"name":"text"`, `no control characters`, `"name":"link"`,
			`"name":"colour"`, `"name":"startsAt","value":"yesterday"`, `"name":"endsAt","value":"2026-11-18"`,
		},
		`{"campaignId":31,"kind":"annotation","text":"a","startsAt":"2026-11-18T00:00:00Z",` +
			`"endsAt":"2026-11-17T00:00:00Z"}`: {
			`"name":"endsAt"`, `must be after startsAt`,
		},
		`{"experimentId":2,"campaignId":0,"kind":"note","text":7}`: {`"name":"experimentId"`, `"name":"campaignId"`},
	} {
		response := s.Post(notesPath, body).Type("application/json").Undocumented().Send().
			RequireStatus(http.StatusBadRequest)
		for _, want := range wants {
			check.Contains(t, response.Text, want, body)
		}
	}
	for body, status := range map[string]int{
		`{"campaignId":99,"kind":"note","text":"a"}`:               http.StatusNotFound,
		`{"websiteId":4,"kind":"note","text":"a"}`:                 http.StatusNotFound, // of another account
		`{"websiteId":1,"campaignId":41,"kind":"note","text":"a"}`: http.StatusNotFound,
		`{"campaignId":99,"kind":"note","text":""}`:                http.StatusBadRequest,
		`[`: http.StatusBadRequest,
	} {
		s.Post(notesPath, body).Type("application/json").Undocumented().Send().CheckStatus(status)
	}
	valid := `{"campaignId":31,"kind":"note","text":"a"}`
	s.Post(notesPath, valid).Type("application/json").Token(s.newToken(1, 0, catalogue.ScopeRead)).Send().
		CheckStatus(http.StatusForbidden)
	s.Post(notesPath+"?websiteId=1", valid).Type("application/json").Undocumented().Send().
		CheckStatus(http.StatusBadRequest)
	check.Equal(t, len(s.log("?entry=note")), 0, "stored notes")
	check.Equal(t, len(s.log("?entry=annotation")), 0, "stored annotations")
	s.Request(http.MethodDelete, notesPath+"/7", "").Undocumented().Send().CheckStatus(http.StatusBadRequest)
	s.Request(http.MethodDelete, notesPath+"/note_"+strings.Repeat("0", 32), "").Send().CheckStatus(http.StatusNotFound)
}

// TestLogRefusesAllFaultsAtOnce sends every wrong parameter in one request.
func TestLogRefusesAllFaultsAtOnce(t *testing.T) {
	s := newShops(t)
	tomorrow := time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
	response := s.Get(logPath + "?entry=decide&since=" + tomorrow + "&limit=%2B5&after=x&experimentId=2&colour=red").
		Undocumented().Send().RequireStatus(http.StatusBadRequest)
	for _, want := range []string{
		`"name":"entry"`, `"name":"since"`, `"name":"limit"`, `"name":"after"`, `"name":"experimentId"`, `"name":"colour"`,
	} {
		check.Contains(t, response.Text, want, want)
	}
	s.Get(logPath + "?campaignId=31&widgetId=7").Undocumented().Send().CheckStatus(http.StatusBadRequest)
	s.Get(logPath + "?websiteId=4").Send().CheckStatus(http.StatusNotFound)
	s.Get(logPath + "?campaignId=99").Send().CheckStatus(http.StatusNotFound)
	s.Get(logPath).Token(s.shareOfCampaign()).Send().CheckStatus(http.StatusForbidden)
}

// TestTenantsOfTheLog reads and withdraws with tokens of accounts and of websites. No answer has anything of another
// one.
func TestTenantsOfTheLog(t *testing.T) {
	s, all := newTenants(t)
	ids := map[int]string{}
	for _, as := range all {
		if len(as.websites) < sites {
			continue
		}
		for website := range as.websites {
			response := s.Post(notesPath, fmt.Sprintf(`{"websiteId":%d,"kind":"note","text":"Note %s"}`, website,
				markOf(website))).Token(as.token).Type("application/json").Send().RequireStatus(http.StatusCreated)
			ids[website] = must.JSON[loggedEntry](t, response.Text).ID
		}
	}
	for _, as := range all {
		for website := 1; website <= tenants*sites; website++ {
			path := fmt.Sprintf("%s?websiteId=%d", logPath, website)
			response := s.Get(path).Token(as.token).Send()
			if !as.websites[website] {
				response.CheckStatus(http.StatusNotFound)
				check.That(t, !strings.Contains(response.Text, "mark"), "%s: %s", path, response.Text)
				continue
			}
			response.CheckStatus(http.StatusOK)
		}
		response := s.Get(logPath).Token(as.token).Send().RequireStatus(http.StatusOK)
		shown := response.Text + fmt.Sprint(response.Header)
		for website := 1; website <= tenants*sites; website++ {
			check.Equal(t, strings.Contains(shown, markOf(website)), as.websites[website], fmt.Sprint(website))
		}
	}
	ofOne := s.newToken(1, 1, catalogue.ScopeWrite)
	for website, id := range ids {
		status := http.StatusNotFound
		if website == 1 {
			status = http.StatusNoContent
		}
		s.Request(http.MethodDelete, notesPath+"/"+id, "").Token(ofOne).Send().CheckStatus(status)
	}
	s.Post(notesPath, `{"websiteId":2,"kind":"note","text":"a"}`).Token(ofOne).Type("application/json").Send().
		CheckStatus(http.StatusNotFound)
	own := s.Post(notesPath, `{"kind":"note","text":"Without an id"}`).Token(ofOne).Type("application/json").Send().
		RequireStatus(http.StatusCreated)
	check.Equal(t, must.JSON[loggedEntry](t, own.Text).WebsiteID, 1)
}
