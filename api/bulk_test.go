package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lifthouse/engine/enginetest"
	"lifthouse/engine/query"
	"lifthouse/engine/render"
	"lifthouse/loadgen/population"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// bulkPath is the path of all results.
const bulkPath = "/v1/results"

// item is an item of all results.
type item struct {
	WebsiteID, CampaignID, WidgetID, ExperimentID int64
	Name                                          string
	Active, Archived                              bool
	ChangedAt                                     time.Time
}

// key returns the key of the item.
func (i *item) key() string {
	if i.CampaignID != 0 {
		return fmt.Sprintf("campaign/%d", i.CampaignID)
	}
	return fmt.Sprintf("experiment/%d/%d", i.WidgetID, i.ExperimentID)
}

// reportPath returns the path of the report of the item.
func (i *item) reportPath() string {
	if i.CampaignID != 0 {
		return fmt.Sprintf("/v1/campaigns/%d/results?scorecard=true", i.CampaignID)
	}
	return fmt.Sprintf("/v1/widgets/%d/experiments/%d/results?scorecard=true", i.WidgetID, i.ExperimentID)
}

// bulkItems returns the items of a response as they were sent, by key, and the keys in their order.
func bulkItems(t *testing.T, response reply) (keys []string, sent map[string]json.RawMessage) {
	t.Helper()
	var list []json.RawMessage
	response.RequireStatus(http.StatusOK).JSON(&list)
	sent = map[string]json.RawMessage{}
	for _, text := range list {
		var of item
		must.OK(t, json.Unmarshal(text, &of))
		keys = append(keys, of.key())
		sent[of.key()] = text
	}
	return keys, sent
}

// newShops serves an account with three websites: campaigns that ended and that run, one of which learns its prior, and
// an experiment of a widget.
func newShops(t *testing.T) *server {
	t.Helper()
	s := newEmptyServer(t)
	s.apply(programmeOfShop() + `        widgets:
          - id: 7
            name: Popup
            type: popup
            primaryGoalId: 3
            experiments:
              - {id: 2, name: Wording, controlShare: 50, active: true, variations: [{id: 1, name: Short, share: 50}]}
      - id: 2
        domain: b.example.com
        goals: [{id: 9, name: Order}]
        metrics:
          - {key: large, name: Large orders, expression: "converted(order where value > 60)"}
          - {key: mean, name: Mean of large orders, expression: "sum(order.value where value > 60) / count(order where value > 60)"}
        campaigns:
          - id: 41
            name: Bayes
            type: experiment
            methodology: bayesian
            prior: learned
            primaryGoalId: 9
            goals: {guardrails: [{metric: large, margin: 10}], secondary: [{metric: mean}]}
            significanceLevel: 95
            owner: Ada
            tags: [cart, home]
            controlShare: 50
            active: true
            variations: [{id: 1, name: New, share: 50}]
      - id: 3
        domain: c.example.com
        campaigns: [{id: 51, name: Never}]
  - id: 2
    name: Other
    websites: [{id: 4, domain: d.example.com, campaigns: [{id: 31, name: Theirs}]}]
`)
	s.token = s.newToken(1, 0, catalogue.ScopeWrite)
	s.visitShop()
	today := time.Now().UTC().Truncate(24 * time.Hour)
	simulated := population.SimpleCampaign{
		WebsiteID: 2, CampaignID: 41, GoalID: 9, Visitors: 500, Start: today.AddDate(0, 0, -9), Days: 9, Seed: 41,
		Variations: []population.SimpleVariation{
			{ID: 0, Share: 1, ConversionRate: 0.10, MeanValue: 50}, {ID: 1, Share: 1, ConversionRate: 0.15, MeanValue: 50},
		},
	}
	s.write(slices.Collect(simulated.GenerateEvents())...)
	var events []schema.Event
	for visitor := range 60 {
		e := shown(visitor, fmt.Sprint("visitor ", visitor), 2, int64(visitor%2), schema.KindView)
		e.Time = today.AddDate(0, 0, -3).Add(time.Duration(visitor) * time.Minute)
		events = append(events, e)
	}
	s.fold(events...)
	return s
}

// TestBulkEqualsSingleReports compares each field of each item with the single report, byte for byte, for random sets of
// fields, also as lines and in pages.
func TestBulkEqualsSingleReports(t *testing.T) {
	s := newShops(t)
	all, whole := bulkItems(t, s.Get(bulkPath+"?field=report").Send())
	want := []string{"campaign/31", "campaign/32", "campaign/33", "experiment/7/2", "campaign/41", "campaign/51"}
	check.Equal(t, fmt.Sprint(all), fmt.Sprint(want), "order")
	reports := map[string]render.Document{}
	for _, key := range all {
		var of item
		must.OK(t, json.Unmarshal(whole[key], &of))
		report := s.Get(of.reportPath()).Send().RequireStatus(http.StatusOK)
		reports[key] = must.Get(render.NewDocument(json.RawMessage(report.Text)))(t)
	}
	r := rand.New(rand.NewPCG(79, 1)) //nolint:gosec // a test
	for round := range tier.Of(12, 300) {
		fields := map[string]bool{}
		path := fmt.Sprintf("%s?limit=%d", bulkPath, 1+r.IntN(7))
		for range r.IntN(5) {
			field := query.BulkFields[r.IntN(len(query.BulkFields))]
			fields[field] = true
			path += "&field=" + field
		}
		var keys []string
		for next := path; next != ""; {
			response := s.Get(next).Send()
			lines := s.Get(next).Header("Accept", "application/x-ndjson").Send().RequireStatus(http.StatusOK)
			array := "[" + strings.ReplaceAll(strings.TrimSpace(lines.Text), "\n", ",") + "]\n"
			check.Equal(t, array, response.Text, "round %d: lines of %s", round, next)
			of, sent := bulkItems(t, response)
			keys = append(keys, of...)
			for key, text := range sent {
				checkFields(t, key, must.Get(render.NewDocument(text))(t), reports[key], fields)
			}
			next = nextPage(response)
		}
		check.Equal(t, fmt.Sprint(keys), fmt.Sprint(want), "round %d: pages of %s", round, path)
	}
}

// checkFields compares the fields of an item after changedAt with those of a report.
func checkFields(t *testing.T, key string, item, report render.Document, fields map[string]bool) {
	t.Helper()
	at := slices.IndexFunc(item, func(m render.Member) bool { return m.Name == "changedAt" })
	must.That(t, at >= 0, "%s has no changedAt", key)
	var want render.Document
	for _, member := range report {
		if fields[member.Name] {
			want = append(want, member)
		}
	}
	check.Equal(t, string(item[at+1:].JSON()), string(want.JSON()), "fields of %s", key)
}

// nextPage returns the target of the next page; empty: there is none.
func nextPage(response reply) string {
	link, _, isNext := strings.Cut(response.Header.Get("Link"), `>; rel="next"`)
	if !isNext {
		return ""
	}
	return strings.TrimPrefix(link, "<")
}

// TestBulkSelectsAndConfirms checks the filters, the scopes and the entity tags of all results.
func TestBulkSelectsAndConfirms(t *testing.T) {
	s := newShops(t)
	for path, want := range map[string][]string{
		"?kind=experiment":                 {"experiment/7/2"},
		"?websiteId=2":                     {"campaign/41"},
		"?active=true&kind=campaign":       {"campaign/33", "campaign/41"},
		"?owner=Ada":                       {"campaign/41"},
		"?tag=home":                        {"campaign/41"},
		"?tag=hom":                         nil,
		"?decision=ship&decision=":         nil, // see below
		"?after=experiment/7/2":            {"campaign/41", "campaign/51"},
		"?after=campaign/33&kind=campaign": {"campaign/41", "campaign/51"},
	} {
		if strings.HasSuffix(path, "=") {
			s.Get(bulkPath + path).Send().CheckStatus(http.StatusBadRequest)
			continue
		}
		keys, _ := bulkItems(t, s.Get(bulkPath+path).Send())
		check.Equal(t, fmt.Sprint(keys), fmt.Sprint(want), "%s", path)
	}
	decided := 0
	for _, decision := range []string{"invalid", "rollBack", "ship", "noDifference", "noWinner", "keepRunning"} {
		response := s.Get(bulkPath + "?decision=" + decision).Send()
		keys, sent := bulkItems(t, response)
		decided += len(keys)
		check.Equal(t, response.Header.Get("X-Total-Count"), fmt.Sprint(len(keys)), "%s", decision)
		for key, text := range sent {
			check.Contains(t, string(text), `"decision":{"status":"`+decision+`"`, "%s", key)
		}
	}
	check.Equal(t, decided, 5, "items with a decision")

	ofWebsite := s.newToken(1, 2, catalogue.ScopeRead)
	keys, _ := bulkItems(t, s.Get(bulkPath).Token(ofWebsite).Send())
	check.Equal(t, fmt.Sprint(keys), fmt.Sprint([]string{"campaign/41"}), "token of a website")
	keys, _ = bulkItems(t, s.Get(bulkPath).Token(s.newToken(2, 0, catalogue.ScopeRead)).Send())
	check.Equal(t, fmt.Sprint(keys), "[campaign/31]", "token of another account, which has a campaign with this id")
	s.Get(bulkPath + "?websiteId=1").Token(ofWebsite).Send().CheckStatus(http.StatusNotFound)
	s.Get(bulkPath + "?after=campaign/33").Token(ofWebsite).Send().CheckStatus(http.StatusBadRequest)
	s.Get(bulkPath).Token(s.newToken(1, 1, catalogue.ScopeIngest)).Send().CheckStatus(http.StatusForbidden)
	s.Get(bulkPath).Token(s.shareOfCampaign()).Send().CheckStatus(http.StatusForbidden)
	s.Get(bulkPath).Header("Accept", "text/csv").Send().CheckStatus(http.StatusNotAcceptable)

	for _, path := range []string{bulkPath, bulkPath + "?field=report"} {
		before := s.Get(path).Send().RequireStatus(http.StatusOK).Header.Get("ETag")
		s.Get(path).Header("If-None-Match", before).Send().CheckStatus(http.StatusNotModified)
		s.fold(at(1, "somebody", 0, schema.KindView, 0)) // of no subject of the account
		s.Get(path).Header("If-None-Match", before).Send().CheckStatus(http.StatusNotModified)
		e := at(1, "somebody else "+path, 1, schema.KindView, 0)
		e.WebsiteID, e.SubjectID = 2, 41
		s.fold(e)
		s.Get(path).Header("If-None-Match", before).Send().CheckStatus(http.StatusOK)
	}
}

// shareOfCampaign returns the token of a share link to campaign 31.
func (s *server) shareOfCampaign() string {
	s.t.Helper()
	share := catalogue.NewShare(1, "board", schema.SubjectIDs{CampaignID: 31}, time.Hour)
	share.WebsiteID = 1
	secret, _, err := s.catalogue.CreateToken(s.t.Context(), share)
	must.OK(s.t, err)
	return secret
}

// TestBulkRefusesAllFaultsAtOnce sends every wrong parameter in one request.
func TestBulkRefusesAllFaultsAtOnce(t *testing.T) {
	s := newShops(t)
	tomorrow := time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
	response := s.Get(bulkPath + "?field=scorcard&field=total&since=" + tomorrow + "&limit=%2B5&after=target/3" +
		"&kind=widget&active=yes&decision=win&colour=red&tag=").Undocumented().Send().RequireStatus(http.StatusBadRequest)
	for _, want := range []string{
		`"name":"field","value":"scorcard","detail":"unknown field; did you mean scorecard?"`,
		`"name":"field","value":"total","detail":"unknown field; did you mean totals?"`,
		`"name":"since","value":"` + tomorrow + `","detail":"must not be in the future`,
		`"name":"limit","value":"+5","detail":"must be an integer from 1 to 1000"`,
		`"name":"after","value":"target/3","detail":"must be the key of an item`,
		`"name":"kind","value":"widget"`, `"name":"active","value":"yes"`, `"name":"decision","value":"win"`,
		`"name":"colour"`, `"name":"tag","value":"","detail":"must not be empty"`,
		`"name":"tag","value":"","detail":"cannot be combined with since`,
	} {
		check.Contains(t, response.Text, want, "all faults")
	}
	for _, since := range []string{"2026-05-01", "2026-05-01T00:00:00", "1969-01-01T00:00:00Z", "x", ""} {
		s.Get(bulkPath + "?since=" + since).Undocumented().Send().CheckStatus(http.StatusBadRequest)
	}
	s.Get(bulkPath + "?after=campaign/77").Send().CheckStatus(http.StatusBadRequest)
	s.Get(bulkPath + "?after=experiment/31/1").Send().CheckStatus(http.StatusBadRequest)
}

// TestBulkPagesWhileCampaignsAreAdded adds campaigns between the pages: each campaign of the beginning is on one page.
func TestBulkPagesWhileCampaignsAreAdded(t *testing.T) {
	s := newShops(t)
	keys, _ := bulkItems(t, s.Get(bulkPath).Send())
	seen := map[string]int{}
	added := 0
	for next := bulkPath + "?limit=2"; next != ""; added++ {
		response := s.Get(next).Send()
		page, _ := bulkItems(t, response)
		for _, key := range page {
			seen[key]++
		}
		s.apply(shopWith(fmt.Sprintf("{id: %d, name: Added}, {id: %d, name: Added}", 1+added, 100+added)))
		next = nextPage(response)
	}
	for _, key := range keys {
		check.Equal(t, seen[key], 1, "%s was sent", key)
	}
	for key, times := range seen {
		check.Equal(t, times, 1, "%s was sent", key)
	}
}

// shopWith returns a change of the website 3 of newShops, which has these campaigns, too.
func shopWith(campaigns string) string {
	return `accounts: [{id: 1, name: Shop, websites: [{id: 3, domain: c.example.com, campaigns: [` + campaigns + `]}]}]`
}

// follower is a client that follows all results by the parameter since and merges the items by key.
type follower struct {
	path  string
	since string
	has   map[string]string
}

// follow asks for what has changed. The next call asks for what has changed since the request was sent, which is later
// than X-As-Of: all servers of the test have one clock, and have folded all events.
func (f *follower) follow(t *testing.T, s *server) {
	t.Helper()
	path := f.path
	if f.since != "" {
		path += "&since=" + f.since
	}
	sentAt := time.Now().UTC().Truncate(time.Millisecond)
	response := s.Get(path).Send()
	asOf := must.Get(time.Parse(time.RFC3339, response.Header.Get("X-As-Of")))(t)
	check.That(t, !asOf.After(sentAt.Add(-9*time.Second)), "X-As-Of is %v at %v", asOf, sentAt)
	keys, sent := bulkItems(t, response)
	for _, key := range keys {
		var of item
		must.OK(t, json.Unmarshal(sent[key], &of))
		if of.Archived {
			delete(f.has, key)
			continue
		}
		f.has[key] = withoutChange(sent[key])
	}
	f.since = query.FormatInstant(sentAt)
}

// withoutChange returns an item without changedAt, which is not older than what a client has.
func withoutChange(text json.RawMessage) string {
	before, after, _ := bytes.Cut(text, []byte(`"changedAt":"`))
	_, after, _ = bytes.Cut(after, []byte(`"`))
	return string(before) + string(after)
}

// TestSyncMissesNothing changes a store at random, by two servers that are also restarted, and compares after each step
// what clients that follow have with a full request.
func TestSyncMissesNothing(t *testing.T) {
	s := newShops(t)
	token := s.token
	another := func() *server { return openServerOn(t, s.conn, enginetest.OpenOneOfSeveral) }
	servers := []*server{another(), another()}
	clients := []*follower{
		{path: bulkPath + "?field=totals&field=decision&field=looks", has: map[string]string{}},
		{path: bulkPath + "?field=report", has: map[string]string{}},
	}
	r := rand.New(rand.NewPCG(79, 2)) //nolint:gosec // a test
	n := 0
	for step := range tier.Of(12, 1_000) {
		by := servers[r.IntN(2)]
		change := step // each change once, then at random
		if step >= changes {
			change = r.IntN(changes)
		}
		did := by.changeAtRandom(r, change, &n)
		if did == "restart" {
			i := slices.Index(servers, by)
			servers[i] = another()
		}
		for _, one := range servers {
			one.token = token
			must.OK(t, one.catalogue.RefreshSnapshot(t.Context()))
			must.OK(t, one.facts.RefreshFacts(t.Context()))
			must.OK(t, one.engine.Ledger.ReadNewRecords(t.Context()))
		}
		client := clients[r.IntN(len(clients))]
		client.follow(t, servers[r.IntN(2)])
		_, full := bulkItems(t, servers[r.IntN(2)].Get(client.path).Send())
		for key, text := range full {
			check.Equal(t, client.has[key], withoutChange(text), "step %d, %s: %s", step, did, key)
		}
		must.Equal(t, len(client.has), len(full), "step %d, %s: items", step, did)
	}
}

// changes is the number of ways in which changeAtRandom changes a store.
const changes = 9

// changeAtRandom changes the store in one way, and returns which. n counts the visitors.
func (s *server) changeAtRandom(r *rand.Rand, change int, n *int) string {
	s.t.Helper()
	today := time.Now().UTC().Truncate(24 * time.Hour)
	*n++
	visitor := fmt.Sprint("visitor ", *n-r.IntN(5))
	e := at(0, visitor, int64(r.IntN(2)), schema.KindView, 0)
	e.EventID, e.SubjectID = schema.HashID(fmt.Sprint("event ", *n)), 31+r.Int64N(3)
	switch change {
	case 0:
		e.Time = time.Now().UTC().Truncate(time.Millisecond)
		s.write(e)
		return "event"
	case 1:
		e.Time = today.AddDate(0, 0, -15-r.IntN(20))
		s.write(e)
		return "late event"
	case 2:
		e.Time = today.AddDate(0, 0, -1)
		e.Subject, e.SubjectID, e.Kind, e.GoalID, e.Value = schema.SubjectNone, 0, schema.KindGoal, 3, 70_000
		e.VariationID = 0
		s.write(e)
		return "goal without exposures"
	case 3:
		action := []string{"start", "stop"}[r.IntN(2)]
		s.Post("/v1/campaigns/41/"+action, "").Send().RequireStatus(http.StatusOK)
		return action
	case 4:
		s.apply(shopWith(fmt.Sprintf("{id: 51, name: Name %d}, {id: %d, name: Added}", *n, 60+r.IntN(3))))
		return "apply"
	case 5:
		must.OK(s.t, s.catalogue.RefreshSnapshot(s.t.Context()))
		file := s.catalogue.Snapshot().AccountResources(1).CatalogueFile()
		for i := range file.Accounts[0].Websites {
			w := &file.Accounts[0].Websites[i]
			w.Campaigns = slices.DeleteFunc(w.Campaigns, func(c catalogue.Campaign) bool { return c.ID >= 60 })
		}
		file.Prune = true
		file.AccountID = 1
		must.Get(s.catalogue.ApplyFile(s.t.Context(), file, false))(s.t)
		return "archive"
	case 6:
		s.Request(http.MethodPut, "/v1/campaigns/31/outcome", fmt.Sprintf(`{"outcome":"dropped","note":"note %d"}`, *n)).
			Type("application/json").Send().RequireStatus(http.StatusOK)
		return "outcome"
	case 7:
		must.Get(s.writer.ForgetVisitors(s.t.Context(), []string{visitor}, nil))(s.t)
		must.OK(s.t, s.catalogue.RecordFactsChange(s.t.Context(), catalogue.VisitorsForgotten,
			s.catalogue.Snapshot().WebsiteIDs()...))
		return "forget"
	}
	return "restart"
}

// TestBulkKeepsWhatWasComputed cancels a request after its first line. A repeated request computes the rest only.
func TestBulkKeepsWhatWasComputed(t *testing.T) {
	s := newShops(t)
	ctx, leave := context.WithCancel(t.Context())
	request := s.Get(bulkPath+"?field=report").Header("Accept", "application/x-ndjson").Build().WithContext(ctx)
	response, err := http.DefaultClient.Do(request)
	must.OK(t, err)
	must.Get(response.Body.Read(make([]byte, 1)))(t)
	leave()
	must.OK(t, response.Body.Close())
	kept, _, _ := s.listed.Usage()
	check.That(t, kept > 0, "nothing is kept")
	var all sync.WaitGroup
	bodies := make([]string, 4)
	for i := range bodies {
		all.Go(func() { bodies[i] = s.Get(bulkPath + "?field=report").Send().Text })
	}
	all.Wait()
	for _, body := range bodies {
		check.Equal(t, withoutClock(body), withoutClock(bodies[0]), "concurrent requests")
	}
	kept, size, _ := s.listed.Usage()
	check.Equal(t, kept, 6, "summaries")
	check.That(t, size < 6*64<<10, "%d bytes are kept", size)
}
