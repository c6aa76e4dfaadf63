package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lifthouse/cmd/internal/arrivals"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

func TestImportThroughTheSocketReadsTheClientsInput(t *testing.T) {
	t.Parallel()
	p, _, store := serving(t)
	events := must.Get(os.ReadFile("../testdata/thirty.ndjson"))(t)
	for _, test := range []struct {
		path string
		code int
		want string
	}{
		{"/dev/stdin", exitFailed, "or - for standard input"},
		{"/proc/self/fd/0", exitFailed, "or - for standard input"},
		{"-", exitOK, "-: 30 rows accepted, 0 of 30 lines rejected"},
	} {
		code, out, complaints := other(t, strings.NewReader(string(events)), "import", test.path, store)
		check.Equal(t, code, test.code, "import %s: exit %d, %q; want %d and %q", test.path, code, out+complaints,
			test.code, test.want)
		check.Contains(t, out+complaints, test.want, "import %s: exit %d, %q; want %d and %q", test.path, code,
			out+complaints, test.code, test.want)
	}
	p.interrupt()
}

func TestCompareNeedsNoLibrary(t *testing.T) {
	cmd := lifthouse(t, "compare", "--control", "716/11927", "--treatment", "900/12010", "--json")
	cmd.Env = append(cmd.Env, "LIFTHOUSE_LIBCHDB=/absent/libchdb.so", "LIFTHOUSE_STORE=nonsense")
	out, err := cmd.Output()
	must.That(t, err == nil, "%v, %s", err, out)
	check.That(t, bytes.HasPrefix(out, []byte(`{"line":1,"metric":"binary",`)), "%v, %s", err, out)
}

// TestUnreadOutputEndsACommandCleanly closes the output of a command after its first line, as head does. The store must
// be closed cleanly, and a command that a server executes must end.
func TestUnreadOutputEndsACommandCleanly(t *testing.T) {
	tier.OnlyLong(t)
	t.Parallel()
	_, store := newThirty(t)
	file := filepath.Join(t.TempDir(), "many.ndjson")
	line := `{"time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"v","event":"view","campaignId":1,"variationId":1}` + "\n"
	must.OK(t, os.WriteFile(file, []byte(strings.Repeat(line, 3_000)), 0o600)) // more than a pipe holds
	succeed(t, nil, "import", file, store)
	readOne := func(args ...string) {
		t.Helper()
		cmd := lifthouse(t, args...)
		out := must.Get(cmd.StdoutPipe())(t)
		var complaints strings.Builder
		cmd.Stderr = &complaints
		must.OK(t, cmd.Start())
		first, err := bufio.NewReader(out).ReadString('\n')
		must.That(t, err == nil, "the first line is %q, %v", first, err)
		check.Contains(t, first, "campaign 1 variation 1", "the first line is %q, %v", first, err)
		_ = out.Close()
		if err := cmd.Wait(); err != nil || complaints.Len() > 0 {
			t.Errorf("%q: %v, %q; want success without messages", args, err, complaints.String())
		}
	}
	readOne("events", "--last=3000", store)
	_, complaints := succeed(t, nil, "events", "--last=1", store)
	check.Equal(t, complaints, "", "the next command")
	p := start(t, "serve", store)
	readOne("events", "--last=3000", store)
	p.interrupt()
}

// TestTheServingUserMayDoAllItNeeds runs the server with the grants of deploy/users.sql on a ClickHouse server, and
// checks that the user cannot create tables.
func TestTheServingUserMayDoAllItNeeds(t *testing.T) {
	tier.OnlyLong(t)
	server := schematest.SharedServer(t)
	admin := schematest.OpenConnection(t, server.DatabaseAddress("default"))
	must.OK(t, admin.Exec(t.Context(), "CREATE DATABASE "+schematest.Granted))
	serving := "--store=" + server.UserAddress(schematest.Serving)
	if code, _, complaints := other(t, nil, "migrate", serving); code != exitFailed || !strings.Contains(complaints, "privileges") {
		t.Errorf("the serving user migrates: exit %d, %s", code, complaints)
	}
	ended(t, exitOK, "migrate", "--store="+server.UserAddress(schematest.Migrating))
	for _, args := range []string{
		"apply -f ../testdata/thirty.catalog.yaml", "import ../testdata/thirty.ndjson", "token create", "token list",
		"export", "audit", "events",
		"report campaign 1 --filter zScore=2", "forget --visitor v1 --yes", "retain --days 30 --yes",
		"facts --rebuild --verify", "check --deep",
	} {
		code, out, complaints := other(t, nil, append(strings.Fields(args), serving)...)
		check.Equal(t, code, exitOK, "%s: exit %d\n%s%s", args, code, out, complaints)
		check.That(t, !strings.Contains(out, "WRONG"), "%s: exit %d\n%s%s", args, code, out, complaints)
		check.That(t, !strings.Contains(out, "list the servers"), "%s: exit %d\n%s%s", args, code, out, complaints)
	}
	p := start(t, "serve", serving)
	p.interrupt()
	for _, forbidden := range []string{
		"DROP TABLE events", "CREATE TABLE other (x Int8) ENGINE = MergeTree ORDER BY x",
		"ALTER TABLE events ADD COLUMN x Int8",
	} {
		err := schematest.OpenConnection(t, server.UserAddress(schematest.Serving)).Exec(t.Context(), forbidden)
		must.That(t, err != nil, "%s: %v", forbidden, err)
		check.Contains(t, err.Error(), "privileges", "%s: %v", forbidden, err)
	}
}

// TestLimitsAreLoweredToTheProfiles checks a profile with lower limits, which rejects statements with higher ones.
func TestLimitsAreLoweredToTheProfiles(t *testing.T) {
	server := schematest.SharedServer(t)
	store := "--store=" + strings.Replace(server.DatabaseAddress(server.CreateDatabase(t)), "admin:", "narrow:", 1)
	for _, args := range []string{
		"apply -f ../testdata/thirty.catalog.yaml", "import ../testdata/thirty.ndjson",
		"report campaign 1",
	} {
		code, out, complaints := other(t, nil, append(strings.Fields(args), store)...)
		check.Equal(t, code, exitOK, "%s: exit %d\n%s%s", args, code, out, complaints)
		check.Contains(t, complaints, "less memory than --query-memory", "%s: exit %d\n%s%s", args, code, out,
			complaints)
	}
}

// TestRetentionErasesWhatEndedLongAgo has three campaigns with one visitor each: a running one, and two that ended 40
// and 10 days ago.
func TestRetentionErasesWhatEndedLongAgo(t *testing.T) {
	tier.OnlyLong(t)
	t.Parallel()
	dir := t.TempDir()
	store := "--store=embedded:" + filepath.Join(dir, "data")
	ago := func(days int) string { return time.Now().UTC().AddDate(0, 0, -days).Format(time.RFC3339) }
	declared := fmt.Sprintf(`accounts: [{id: 1, name: Shop, websites: [{id: 1, domain: shop.example.com, campaigns: [
		{id: 1, name: Runs, active: true, startDate: "%s", endDate: "%[2]s"},
		{id: 2, name: Old, startDate: "%[1]s", endDate: "%[2]s"},
		{id: 3, name: Recent, startDate: "%[1]s", endDate: "%[3]s"}]}]}]`, ago(60), ago(40), ago(10))
	var events strings.Builder
	for n := range 6 {
		_, _ = fmt.Fprintf(&events, `{"eventId":"%d","time":"2026-05-01T10:00:00Z","websiteId":1,"visitor":"v","event":"view","campaignId":%d,"variationId":0}`+"\n", n, n%3+1)
	}
	for name, text := range map[string]string{"catalog.yaml": declared, "events.ndjson": events.String()} {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	ended(t, exitOK, "apply", "-f", filepath.Join(dir, "catalog.yaml"), store)
	ended(t, exitOK, "import", filepath.Join(dir, "events.ndjson"), store)
	ended(t, exitOK, "facts", store)
	token := strings.TrimSpace(ended(t, exitOK, "token", "create", store))
	views := func(p *process) string {
		t.Helper()
		var campaigns []struct{ Views int64 }
		p.get("/v1/campaigns", token, &campaigns)
		return fmt.Sprint(campaigns)
	}
	p := start(t, "serve", "--retention-days=9", store)
	for look := time.NewTicker(20 * time.Millisecond); views(p) != "[{2} {0} {0}]"; <-look.C {
	}
	p.interrupt()
}

// TestEventsAreHeldAgainstTheClock sends events with three times to a server that accepts events of the last day.
func TestEventsAreHeldAgainstTheClock(t *testing.T) {
	p, _, store := serving(t, "--max-event-age=24h", "--max-event-skew=1h")
	token := strings.TrimSpace(ended(t, exitOK, "token", "create", "--scope=ingest", "--website=1", store))
	const line = `{"eventId":"%v","time":%[1]d,"websiteId":1,"visitor":"v","event":"view","campaignId":1,"variationId":0}` + "\n"
	var events strings.Builder
	for _, ago := range []time.Duration{48 * time.Hour, 0, -2 * time.Hour} {
		fmt.Fprintf(&events, line, time.Now().Add(-ago).UnixMilli())
	}
	_, answer, err := send(t.Context(), http.DefaultClient, http.MethodPost, p.url+"/events", token, events.String())
	must.OK(t, err)
	for _, part := range []string{`{"accepted":1,"rejected":2,`, "at most 24h0m0s before now", "at most 1h0m0s after now"} {
		check.Contains(t, answer, part)
	}
	p.interrupt()
}

// TestEventsShowsWhatArrivesThroughTheSocket reads a served store while events arrive by import and over HTTP.
func TestEventsShowsWhatArrivesThroughTheSocket(t *testing.T) {
	t.Parallel()
	server, _, store := serving(t)
	ended(t, exitOK, "import", "../testdata/thirty.ndjson", store)
	_, token, _ := other(t, nil, "token", "create", "--scope", "ingest", "--website", "1", store)
	code, out, complaints := other(t, nil, "events", "--last", "3", store)
	check.Equal(t, code, exitOK, "events: exit %d\n%s%s", code, out, complaints)
	check.Equal(t, strings.Count(out, "\n"), 3, "events: exit %d\n%s%s", code, out, complaints)
	check.Contains(t, out, "website 1   ", "events: exit %d\n%s%s", code, out, complaints)

	line := `{"eventId":"new","time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"v\u001b[31m","event":"view","campaignId":1,"variationId":1,"device":"phone","country":"us"}`
	must.That(t, server.post(http.DefaultClient, strings.TrimSpace(token), line+"\n"+`{"visitor":"v\u001b[31m","password":"hunter2"}`), "the events are not taken")
	var accepted, rejected arrivals.Arrival
	for accepted.Event == nil || rejected.Rejected == nil { // a rejected line is stored within half a second
		_, out, _ = other(t, nil, "events", "--json", "--last", "1", store)
		for line := range strings.Lines(out) {
			a := must.JSON[arrivals.Arrival](t, []byte(line))
			if a.Rejected != nil {
				rejected = a
			} else {
				accepted = a
			}
		}
	}
	event, wrong := accepted.Event, rejected.Rejected
	must.That(t, event != nil, "the event is shown as %+v", event)
	check.Equal(t, event.CampaignID, 1, "the event is shown as %+v", event)
	check.Equal(t, *event.VariationID, 1, "the event is shown as %+v", event)
	check.Equal(t, event.Device, "phone", "the event is shown as %+v", event)
	check.Equal(t, event.Country, "US", "the event is shown as %+v", event)
	must.That(t, wrong != nil, "the rejected line is shown as %+v", wrong)
	check.Equal(t, wrong.Channel, "http", "the rejected line is shown as %+v", wrong)
	check.Equal(t, wrong.Line, 2, "the rejected line is shown as %+v", wrong)
	check.Contains(t, wrong.Reason, "password: unknown field", "the rejected line is shown as %+v", wrong)
	check.Contains(t, wrong.Text, `"visitor"`, "the rejected line is shown as %+v", wrong)
	check.That(t, !strings.Contains(wrong.Text, "hunter2"), "the rejected line is shown as %+v", wrong)
	_, out, _ = other(t, nil, "events", "--rejects", store)
	check.Contains(t, out, "website 1   REJECTED  http line 2: ", "events --rejects: %q", out)
	check.That(t, !strings.Contains(out, "\x1b"), "events --rejects: %q", out)
	check.That(t, !strings.Contains(out, "view"), "events --rejects: %q", out)
	server.interrupt()
}
