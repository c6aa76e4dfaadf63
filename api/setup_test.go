package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lifthouse/api"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/tier"
)

// admin returns headers with a token of account 1 of the scope admin, and further headers.
func (s *server) admin(headers ...string) []string {
	s.t.Helper()
	return append([]string{"Authorization", "Bearer " + s.newToken(1, 0, catalogue.ScopeAdmin)}, headers...)
}

// putCatalogue sends a catalogue and returns the response and its body.
func (s *server) putCatalogue(admin []string, query, match, text string, headers ...string) (answer, string) {
	s.t.Helper()
	headers = slices.Concat(admin, []string{"Content-Type", "application/yaml"}, headers)
	if match != "" {
		headers = append(headers, "If-Match", match)
	}
	return s.send(http.MethodPut, "/catalogue"+query, strings.NewReader(text), headers...)
}

// getCatalogue returns the catalogue as YAML and its entity tag.
func (s *server) getCatalogue(admin []string) (text, tag string) {
	s.t.Helper()
	response, text := s.send(http.MethodGet, "/catalogue", http.NoBody, admin...)
	if response.status != http.StatusOK {
		s.t.Fatalf("GET /catalogue = %d %s", response.status, text)
	}
	return text, response.Get("ETag")
}

// changesIn returns the changes of a response, such as "campaign 12 changed name".
func changesIn(t *testing.T, text string) (changes []string) {
	t.Helper()
	var applied struct {
		DryRun  bool
		Changes []struct {
			Kind   string
			ID     int64
			Change string
			Fields []struct {
				Field         string
				Before, After json.RawMessage
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &applied); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for _, c := range applied.Changes {
		change := fmt.Sprintf("%s %d %s", c.Kind, c.ID, c.Change)
		for _, f := range c.Fields {
			change += fmt.Sprintf(" %s:%s>%s", f.Field, f.Before, f.After)
		}
		changes = append(changes, change)
	}
	return changes
}

func TestCatalogueIsReadEditedAndWritten(t *testing.T) {
	s, _ := newTwoSites(t)
	admin := s.admin()
	other := newServerOn(t, s.conn)
	text, tag := s.getCatalogue(admin)
	if strings.Contains(text, "Rival") || !strings.Contains(text, "Newsletter") || !regexp.MustCompile(`^"[0-9a-f]{16}"$`).MatchString(tag) {
		t.Fatalf("the tag %s of\n%s", tag, text)
	}
	response, again := s.putCatalogue(admin, "", tag, text)
	if got := changesIn(t, again); response.status != http.StatusOK || len(got) != 0 || response.Get("ETag") != tag {
		t.Errorf("sent back: %d %v, tag %s, was %s", response.status, got, response.Get("ETag"), tag)
	}
	edited := strings.Replace(strings.Replace(text, "name: Button\n", "name: Bigger button\n", 1), "        campaigns:\n", "        campaigns:\n          - {id: 14, name: Later, tags: [q4]}\n", 1)
	want := []string{"campaign 14 created", `campaign 13 changed name:"Button">"Bigger button"`}
	response, dry := s.putCatalogue(admin, "?dryRun=true", "", edited)
	if got := changesIn(t, dry); response.status != http.StatusOK || !slices.Equal(got, want) || response.Get("ETag") != tag || !strings.Contains(dry, `"dryRun":true`) {
		t.Errorf("dry run: %d %v, tag %s; want %v, tag %s", response.status, got, response.Get("ETag"), want, tag)
	}
	if _, is := s.getCatalogue(admin); is != tag {
		t.Errorf("a dry run changes the tag from %s to %s", tag, is)
	}
	response, done := s.putCatalogue(admin, "?dryRun=false&prune=false", tag, edited)
	if got := changesIn(t, done); response.status != http.StatusOK || !slices.Equal(got, want) || !strings.Contains(done, `"notes":[`) || !strings.Contains(done, `"shares":[{"name":"Control"`) {
		t.Errorf("%d %v, want %v\n%s", response.status, got, want, done)
	}
	text, is := s.getCatalogue(admin)
	if is != response.Get("ETag") || is == tag || !strings.Contains(text, "Bigger button") {
		t.Errorf("the tag is %s, after the change %s, before %s\n%s", is, response.Get("ETag"), tag, text)
	}
	entries, err := s.catalogue.ReadAuditLog(t.Context(), 1, time.Unix(0, 0), 1)
	if err != nil || len(entries) != 1 || !strings.HasPrefix(entries[0].By, "token ") {
		t.Errorf("the audit log: %+v, %v", entries, err)
	}
	if response, text := s.putCatalogue(admin, "", tag, edited); response.status != http.StatusPreconditionFailed || !strings.Contains(text, `"code":"precondition_failed"`) {
		t.Errorf("with the old tag: %d %s, want 412", response.status, text)
	}
	if response, text := other.putCatalogue(admin, "", is, text); response.status != http.StatusOK {
		t.Errorf("another server, that has not read this version = %d %s", response.status, text)
	}
	for _, match := range []string{"*", "W/" + is, `"0", ` + is} {
		if response, text := s.putCatalogue(admin, "", match, text); response.status != http.StatusOK {
			t.Errorf("If-Match: %s = %d %s", match, response.status, text)
		}
	}
	if response, _ := s.send(http.MethodGet, "/catalogue", http.NoBody, append(admin, "If-None-Match", is)...); response.status != http.StatusNotModified {
		t.Errorf("If-None-Match: %d, want 304", response.status)
	}
}

func TestCatalogueAsJSON(t *testing.T) {
	s, _ := newTwoSites(t)
	admin := s.admin("Accept", "application/json")
	response, text := s.send(http.MethodGet, "/catalogue", http.NoBody, admin...)
	tag := response.Get("ETag")
	if _, is := s.getCatalogue(s.admin()); response.status != http.StatusOK || tag == is {
		t.Fatalf("%d %s, tag %s, as YAML %s", response.status, text, tag, is)
	}
	response, same := s.putCatalogue(admin, "", tag, text, "Content-Type", "application/json")
	if got := changesIn(t, same); response.status != http.StatusOK || len(got) != 0 {
		t.Errorf("sent back: %d %v", response.status, got)
	}
	ascii := strings.Replace(text, "Ünder", `\u00dcber \ud83d\ude00`, 1) // as encoders of other languages write it
	response, changed := s.putCatalogue(admin, "", tag, ascii, "Content-Type", "application/json; charset=utf-8")
	if got, want := changesIn(t, changed), []string{`campaign 12 changed description:"Ünder">"Über 😀"`}; response.status != http.StatusOK || !slices.Equal(got, want) {
		t.Errorf("%d %v, want %v", response.status, got, want)
	}
}

func TestHostileCatalogues(t *testing.T) {
	s, ingests := newTwoSites(t)
	admin := s.admin()
	text, tag := s.getCatalogue(admin)
	stopped := func() string {
		s.do("POST", "/v1/campaigns/12/stop", s.token)
		_, now := s.getCatalogue(admin)
		was := tag
		tag = now
		return was
	}()
	other := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	const yaml = "application/yaml"
	for _, test := range []struct {
		name   string
		tokens []string
		query  string
		match  string
		kind   string
		body   string
		status int
		says   []string
	}{
		{"no token", other("x"), "?colour=red", "", yaml, text, 401, []string{"invalid_token"}},
		{"scope read", other(s.newToken(1, 0, catalogue.ScopeRead)), "?colour=red", "", yaml, text, 403, []string{"lacks the scope admin"}},
		{"scope write", other(s.token), "", tag, yaml, text, 403, []string{"insufficient_scope"}},
		{"scope ingest", other(ingests), "", tag, yaml, text, 403, []string{"insufficient_scope"}},
		{"unknown parameter", admin, "?dryrun=true", tag, yaml, text, 400, []string{"did you mean dryRun?"}},
		{"wrong values", admin, "?dryRun=yes&prune=1", tag, yaml, text, 400, []string{`"name":"dryRun","value":"yes"`, `"name":"prune","value":"1","detail":"must be one of true, false"`}},
		{"no If-Match", admin, "", "", yaml, text, 428, []string{"precondition_required", "If-Match with the ETag of GET /catalogue"}},
		{"stale If-Match", admin, "", stopped, yaml, text, 412, []string{"nothing was changed"}},
		{"stale If-Match of a dry run", admin, "?dryRun=true", stopped, yaml, text, 412, nil},
		{"If-Match of nothing", admin, "", `"x"`, yaml, text, 412, nil},
		{"form", admin, "", tag, "application/x-www-form-urlencoded", text, 415, []string{"must be application/yaml or application/json"}},
		{"huge", admin, "", tag, yaml, strings.Repeat("#", 1<<20+1), 413, []string{"body_too_large", "at most 1048576 bytes"}},
		{"empty", admin, "", tag, yaml, "", 400, []string{`"name":"accounts"`, "must have at least one account"}},
		{"no YAML", admin, "", tag, yaml, "accounts: [", 400, []string{"invalid_body"}},
		{"half JSON", admin, "", tag, "application/json", `{"accounts": [{"id": 1`, 400, []string{"invalid_body"}},
		{"another structure", admin, "", tag, yaml, "5", 400, []string{"must have fields: accounts"}},
		{"nested", admin, "", tag, yaml, strings.Repeat("[", 100_000), 400, []string{"max depth"}},
		{"omitted", admin, "", tag, yaml, strings.Repeat("-\n", 500_000), 400, []string{"must have fields: accounts"}},
		{"circular", admin, "", tag, yaml, "accounts: &a [{id: 1, websites: *a}]", 400, []string{"aliases are not supported"}},
		{"many faults", admin, "", tag, yaml, "accounts: [" + strings.Repeat("1,", 3000) + "]", 400, []string{`accounts[999]`}},
		{"all faults at once", admin, "", tag, yaml, "accounts:\n- id: 1\n  nam: Shop\n  websites:\n  - id: 1\n    domain: Shop\n    campaigns:\n    - {id: 12, name: B, power: 5, primaryGoalId: 44}\n", 400, []string{
			`"code":"invalid_catalogue"`, `{"in":"body","name":"accounts[0].nam","value":"","detail":"line 3: unknown field`,
			`"name":"accounts[0].websites[0].domain","value":"Shop","detail":"line 6: must be a lower-case domain`,
			`"name":"accounts[0].websites[0].campaigns[0].power","value":"5","detail":"line 8: must be from 60 to 99"`, "the website has no such goal",
		}},
		{"another account", admin, "", tag, yaml, "accounts: [{id: 2, name: Rival, websites: [{id: 9, domain: x, campaigns: [{id: 1, name: N, primaryGoalId: 98}]}]}]", 400, []string{`[{"in":"body","name":"accounts[0].id","value":"2","detail":"line 1: must be 1: the request may change only this account"}]`}},
		{"another account besides", admin, "?prune=true", tag, yaml, text + "  - {id: 2, name: Mine}\n", 400, []string{`"name":"accounts[1].id"`}},
		{"another account's website", admin, "", tag, yaml, "accounts: [{id: 1, name: Shop, websites: [{id: 9, domain: rival.example.com}]}]", 400, []string{"belongs to another account"}},
		{"long value", admin, "", tag, yaml, "accounts: [{id: 1, name: " + strings.Repeat("ü", 100_000) + "}]", 400, []string{"must have 1 to 255 characters, has 100000"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			response, text := s.putCatalogue(test.tokens, test.query, test.match, test.body, "Content-Type", test.kind)
			if response.status != test.status || len(text) > 300_000 {
				t.Errorf("%d, %d bytes, %.600s\nwant %d", response.status, len(text), text, test.status)
			}
			for _, want := range test.says {
				if !strings.Contains(text, want) {
					t.Errorf("%.2000s\nlacks %s", text, want)
				}
			}
		})
	}
	if now, is := s.getCatalogue(admin); is != tag || !strings.Contains(now, "Ünder") {
		t.Errorf("the tag was %s and is %s\n%s", tag, is, now)
	}
	if rival := s.catalogue.Snapshot().AccountResources(2); rival.Name != "Rival" || len(rival.Campaigns) != 1 {
		t.Errorf("the other account: %+v", rival)
	}
}

func TestPruneStaysInTheAccount(t *testing.T) {
	s, _ := newTwoSites(t)
	admin := s.admin()
	_, tag := s.getCatalogue(admin)
	const short = "accounts: [{id: 1, name: Shop, websites: [{id: 1, domain: shop.example.com}]}]"
	for _, dryRun := range []string{"true", "false"} {
		response, text := s.putCatalogue(admin, "?prune=true&dryRun="+dryRun, tag, short)
		got := changesIn(t, text)
		if response.status != http.StatusOK || len(got) != 11 || !slices.Contains(got, "website 2 archived") || slices.Contains(got, "account 2 archived") {
			t.Errorf("%d %q", response.status, got)
		}
	}
	known := s.catalogue.Snapshot()
	if owned := known.AccountResources(1); len(owned.Campaigns)+len(owned.Widgets)+len(owned.Goals) != 0 || len(owned.Websites) != 1 || len(known.AccountTokens(1)) != 3 {
		t.Errorf("left: %+v", owned)
	}
	if rival := known.AccountResources(2); len(rival.Campaigns) != 1 || len(rival.Widgets) != 1 || len(rival.Goals) != 1 {
		t.Errorf("the other account: %+v", rival)
	}
}

// TestConcurrentCatalogueChangesLoseNothing has 200 clients that each add a goal: first all at
// the same time, with the same entity tag, which one may do. Then they get the catalogue and
// send it again until each has succeeded, outside the long tier only 20 of them.
func TestConcurrentCatalogueChangesLoseNothing(t *testing.T) {
	const clients, atOnce = 200, 4
	s := newEmptyServer(t, func(o *api.Options) { o.TokenRate = 0 })
	s.apply("accounts: [{id: 1, name: Shop, websites: [{id: 1, domain: shop.example.com, goals: [{id: 1000, name: First}]}]}]")
	admin := s.admin("Content-Type", "application/yaml")
	before, tag := s.getCatalogue(admin)
	add := func(client int, text, tag string) int {
		goal := fmt.Sprintf("goals:\n          - {id: %d, name: Of client %d}\n", client+1, client+1)
		request := s.request(http.MethodPut, "/catalogue", strings.NewReader(strings.Replace(text, "goals:\n", goal, 1)), append(admin, "If-Match", tag)...)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Error(err)
			return 0
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusPreconditionFailed {
			t.Errorf("client %d: %d", client, response.StatusCode)
		}
		return response.StatusCode
	}
	statuses := make([]int, clients)
	var together sync.WaitGroup
	for client := range clients {
		together.Go(func() { statuses[client] = add(client, before, tag) })
	}
	together.Wait()
	first := slices.Index(statuses, http.StatusOK)
	slices.Sort(statuses)
	if first < 0 || statuses[1] != http.StatusPreconditionFailed {
		t.Fatalf("of the clients with one tag, all but one must get 412: %v", statuses)
	}
	retries := tier.Of(20, clients)
	var pending sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(retries))
	for range atOnce {
		pending.Go(func() {
			for client := int(left.Add(-1)); client >= 0; client = int(left.Add(-1)) {
				for status := http.StatusPreconditionFailed; client != first && status == http.StatusPreconditionFailed; {
					response, text := s.raw(http.MethodGet, "/catalogue", admin...)
					status = add(client, text, response.Get("ETag"))
				}
			}
		})
	}
	pending.Wait()
	goals := s.catalogue.Snapshot().AccountResources(1).Goals
	for client := range retries {
		if goals[int64(client+1)].Name != fmt.Sprint("Of client ", client+1) {
			t.Errorf("the goal of client %d is lost: %+v", client, goals[int64(client+1)])
		}
	}
}
