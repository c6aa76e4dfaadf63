package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/cmd/internal/app"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
	"lifthouse/engine/watch"
	"lifthouse/loadgen/demo"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/outbox"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// shop is a simulated shop with campaigns, and two servers that share its store.
type shop struct {
	t         *testing.T
	r         *rand.Rand
	conn      driver.Conn
	hooks     *receiver
	first     time.Time
	campaigns []simulated
	servers   [2]*simulatedServer
	ids       uint64
	decided   map[string]bool // what reports say, as "campaign status"
	kills     int
}

// simulated is a campaign: its first day and the day after its last, and its visitors a day and conversion rate, by
// variation.
type simulated struct {
	start, end int
	visitors   [2]int
	rates      [2]float64
}

// runsOn reports whether the campaign runs on a day.
func (c *simulated) runsOn(day int) bool { return c.start <= day && day < c.end }

// simulatedServer is what a server does besides answering requests, with a simulated clock.
type simulatedServer struct {
	store    *app.Store
	recorder *watch.Recorder
	sender   *watch.Sender
	holder   string
	left     *int // operations until it is killed
}

// TestAShopsDecisionsArriveOnce follows the campaigns of a shop day by day. Two servers record and deliver; they are
// killed in between, and the receiver refuses all messages for an hour. Each decision that a report shows arrives
// exactly once, in the order in which the decisions were recorded.
func TestAShopsDecisionsArriveOnce(t *testing.T) {
	tier.OnlyLong(t)
	const days = 60
	s := newShop(t, 200, days)
	for day := range days {
		s.liveDay(day)
		now := s.first.AddDate(0, 0, day+1).Add(40 * time.Minute)
		refused := day%7 == 4
		if refused {
			s.hooks.responds(func(w http.ResponseWriter,
				_ *http.Request,
			) {
				w.WriteHeader(http.StatusServiceUnavailable)
			})
		}
		s.work(now)
		if refused {
			s.deliver(now.Add(time.Hour))
			s.hooks.responds(nil)
		}
		s.noteDecisions(day)
	}
	for hour := 0; hour < 48 && len(s.missing()) > 0; hour++ { // messages that were refused are due again
		s.deliver(s.first.AddDate(0, 0, days+1).Add(time.Duration(hour) * time.Hour))
	}
	s.checkReceived()
	t.Logf("%d campaigns, %d days, %d decisions, %d kills", len(s.campaigns), days, len(s.decided), s.kills)
}

func newShop(t *testing.T, campaigns, days int) *shop {
	t.Helper()
	s := &shop{
		t: t, r: rand.New(rand.NewPCG(1, 2)), hooks: newReceiver(t), decided: map[string]bool{},
		first: time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -days-2),
	}
	s.conn = schematest.SharedServer(t).OpenMigrated(t)
	site := catalogue.Website{
		ID: 1, Domain: "shop.example.com",
		Goals: []catalogue.Goal{{ID: 1, WebsiteID: 1, Name: "Purchase"}},
	}
	for i := range campaigns {
		n, rate := 60+s.r.IntN(100), 0.08+0.08*s.r.Float64()
		c := simulated{0, days, [2]int{n, n}, [2]float64{rate, rate}}
		if i >= 5 { // most campaigns run for one or two weeks
			c.start = i * 7 % (days - 10)
			c.end = min(days, c.start+9+i%7)
		}
		declared := catalogue.Campaign{
			ID: int64(i + 1), WebsiteID: 1, Name: fmt.Sprint("Campaign ", i+1), Type: "experiment", TargetMode: "live",
			Methodology: catalogue.Frequentist, PrimaryGoalID: 1,
			ControlShare: 50, SignificanceLevel: 95, Power: 80, MDE: 20,
			Variations: []catalogue.Variation{{ID: 1, Name: "New", Share: 50}},
			Initial: catalogue.Initial{
				StartDate: &catalogue.Date{Time: s.first.AddDate(0, 0, c.start).Add(-time.Hour)},
				EndDate:   &catalogue.Date{Time: s.first.AddDate(0, 0, c.end)},
			},
		}
		switch i % 5 { // the others are harmless
		case 0:
			c.rates[1] *= 1.8
		case 1:
			c.rates[1] *= 0.4
		case 2:
			c.visitors[1] /= 2
		case 3:
			declared.EquivalenceMargin = 90
		}
		if i < 5 || i%2 == 0 { // decided at the end of a week
			declared.MinDays, declared.Maturity = new(int), new(int)
		}
		if i < 5 {
			c.visitors[0], c.visitors[1] = 5*c.visitors[0], 5*c.visitors[1]
		}
		s.campaigns = append(s.campaigns, c)
		site.Campaigns = append(site.Campaigns, declared)
	}
	c := must.Get(catalogue.Open(t.Context(), s.conn))(t)
	hook := catalogue.Webhook{
		ID: 1, URL: s.hooks.URL, Events: []string{catalogue.EventDecisionChanged},
		Format: catalogue.FormatSlack,
	}
	account := catalogue.Account{
		ID: 1, Name: "Shop", Websites: []catalogue.Website{site},
		Webhooks: []catalogue.Webhook{hook},
	}
	must.Get(c.ApplyFile(t.Context(), catalogue.File{Accounts: []catalogue.Account{account}}, false))(t)
	// The webhook was declared before the first simulated day.
	must.OK(t, s.conn.Exec(t.Context(), "INSERT INTO catalogue SELECT * REPLACE (version + 1 AS version, {body:String} AS body) FROM catalogue WHERE kind = 'webhook' AND JSONHas(catalogue.body, 'createDate')",
		clickhouse.Named("body", `{"createDate":"2020-01-01T00:00:00Z","updateDate":"2020-01-01T00:00:00Z"}`)))
	for i := range s.servers {
		s.startServer(i, false)
	}
	return s
}

// startServer starts a server, which is killed after some operations if killed is true.
func (s *shop) startServer(i int, killed bool) {
	s.t.Helper()
	server := &simulatedServer{}
	conn := s.conn
	store, err := app.NewStore(s.t.Context(), conn, schema.Address{}, app.Options{Limits: source.DefaultLimits})
	must.OK(s.t, err)
	if killed { // after it started
		left := 1 + s.r.IntN(10*len(s.campaigns))
		server.left, conn = &left, schematest.KilledConn{Conn: s.conn, Left: &left}
		if store, err = app.NewStore(s.t.Context(), conn, schema.Address{},
			app.Options{Limits: source.DefaultLimits}); err != nil {
			s.kills++
			s.startServer(i, false)
			return
		}
	}
	server.store, server.recorder, server.holder = store, watch.NewRecorder(store.Engine, store.Catalogue, store.Outbox,
		store.Summaries), fmt.Sprint(s.r.Uint64())
	server.sender = watch.NewSender(store.Outbox, store.Catalogue,
		watch.SenderOptions{AllowPrivate: true, Holder: server.holder, Secrets: store.Secrets})
	s.servers[i] = server
}

// liveDay stores the events of a day, accepted half an hour after its end.
func (s *shop) liveDay(day int) {
	s.t.Helper()
	var events []schema.Event
	for i, c := range s.campaigns {
		for variation, n := range c.visitors {
			if !c.runsOn(day) {
				n = 0
			}
			for visitor := range n {
				s.ids++
				e := schema.Event{
					EventID:   2 * s.ids,
					Time:      s.first.AddDate(0, 0, day).Add(time.Hour + time.Duration(visitor)*time.Minute),
					WebsiteID: 1,
					Subject:   schema.SubjectCampaign, SubjectID: int64(i + 1), VisitorID: s.ids,
					VariationID: int64(variation), Kind: schema.KindView,
				}
				events = append(events, e)
				if s.r.Float64() < c.rates[variation] {
					e.EventID, e.Kind, e.GoalID, e.Time = e.EventID+1, schema.KindGoal, 1, e.Time.Add(time.Minute)
					events = append(events, e)
				}
			}
		}
	}
	must.OK(s.t, schema.InsertEvents(s.t.Context(), s.conn, events, s.first.AddDate(0, 0, day+1).Add(30*time.Minute)))
}

// work lets one server or both make a pass and deliver. Each is sometimes killed, and starts again.
func (s *shop) work(now time.Time) {
	s.t.Helper()
	away := s.r.IntN(2 * len(s.servers)) // in half of the days, one of them does not run
	for i := range s.servers {
		if i == away {
			continue
		}
		if s.r.IntN(3) == 0 {
			s.startServer(i, true)
		}
		server := s.servers[i]
		if err := server.store.Facts.RefreshFacts(s.t.Context()); err == nil || server.left == nil {
			server.recorder.RecordDue(s.t.Context(), now)
			s.deliverBy(server, now)
		}
		if server.left != nil {
			s.kills++
			s.expireLease()
			s.startServer(i, false)
			must.OK(s.t, s.servers[i].store.Facts.RefreshFacts(s.t.Context()))
			s.servers[i].recorder.RecordDue(s.t.Context(), now)
		}
	}
	s.deliver(now)
}

// expireLease lets the lease of a killed server expire, without waiting for that.
func (s *shop) expireLease() {
	s.t.Helper()
	must.OK(s.t, s.conn.Exec(s.t.Context(), "TRUNCATE TABLE leases"))
}

// deliver lets the servers deliver what is due. In the first round, none may hold the lease: one gives it up, and
// another takes it.
func (s *shop) deliver(now time.Time) {
	s.t.Helper()
	for range 2 {
		for _, server := range s.servers {
			s.deliverBy(server, now)
		}
	}
}

func (s *shop) deliverBy(server *simulatedServer, now time.Time) {
	s.t.Helper()
	held, err := server.store.Outbox.TakeLease(s.t.Context(), server.holder)
	if held && err == nil {
		_, err = server.sender.DeliverDue(s.t.Context(), now)
	}
	if err != nil && !errors.Is(err, schematest.ErrKilled) && server.left == nil {
		s.t.Error(err)
	}
}

// noteDecisions notes the decisions of the reports on a day: of campaigns that run, or ended less than two days ago.
func (s *shop) noteDecisions(day int) {
	s.t.Helper()
	e := s.servers[0].store.Engine
	must.OK(s.t, s.servers[0].store.Facts.RefreshFacts(s.t.Context()))
	for i, c := range s.campaigns {
		if !c.runsOn(day) && !c.runsOn(day-2) {
			continue
		}
		p := must.Get(e.PlanReport(query.Request{AccountID: 1, SubjectID: int64(i + 1), Scorecard: true}))(s.t)
		r := must.Get(e.ComputeReport(context.WithoutCancel(s.t.Context()), p))(s.t)
		if status := string(r.Decision.Status); slices.Contains([]string{"ship", "rollBack", "noDifference", "invalid"},
			status) {
			s.decided[fmt.Sprint(i+1, " ", status)] = true
		}
	}
}

// arrived returns the decisions in the order in which they were recorded and accepted by the receiver.
func (s *shop) arrived() (found []string) {
	s.t.Helper()
	sent := must.Get(s.servers[0].store.Outbox.RecentMessages(s.t.Context(), 1, 0, 10_000))(s.t)
	slices.SortFunc(sent,
		func(a, b outbox.Sent) int { return cmp.Or(a.RecordedAt.Compare(b.RecordedAt), cmp.Compare(a.ID, b.ID)) })
	for i := range sent {
		for _, d := range sent[i].Deliveries {
			if d.Outcome == outbox.Delivered {
				found = append(found, fmt.Sprint(sent[i].Subject.ID, " ", sent[i].State))
			}
		}
	}
	return found
}

// missing returns the decisions that have not arrived.
func (s *shop) missing() (missing []string) {
	arrived := s.arrived()
	for decision := range s.decided {
		if !slices.Contains(arrived, decision) {
			missing = append(missing, decision)
		}
	}
	return missing
}

// checkReceived compares what the receiver got with the decisions of the reports. A message that a server delivered and
// did not record before it was killed arrives again, directly after the first time or after a new start.
func (s *shop) checkReceived() {
	s.t.Helper()
	arrived := s.arrived()
	check.Equal(s.t, len(arrived), len(s.decided), "messages %q", arrived)
	accepted := 0
	var order []string
	for _, request := range s.hooks.take() {
		body := must.JSON[struct{ Text string }](s.t, request.body)
		_, rest, _ := strings.Cut(body.Text, "campaign=")
		id, _, _ := strings.Cut(rest, "|")
		if request.accepted {
			accepted++
		}
		if !slices.Contains(order, id) { // not refused before, nor sent again
			order = append(order, id)
		}
	}
	var want []string
	for _, decision := range arrived {
		id, _, _ := strings.Cut(decision, " ")
		if !slices.Contains(want, id) {
			want = append(want, id)
		}
	}
	again := accepted - len(arrived)
	check.That(s.t, again >= 0, "%d messages arrived again after %d kills", again, s.kills)
	check.That(s.t, again <= s.kills, "%d messages arrived again after %d kills", again, s.kills)
	check.That(s.t, slices.Equal(order, want), "received in the order %q, recorded in the order %q", order, want)
}

// TestDemoLeavesOtherStoresAlone also checks stores without a mark file.
func TestDemoLeavesOtherStoresAlone(t *testing.T) {
	owned := func(names ...string) []*catalogue.AccountResources {
		var accounts []*catalogue.AccountResources
		for _, name := range names {
			accounts = append(accounts, &catalogue.AccountResources{Account: catalogue.Account{Name: name}})
		}
		return accounts
	}
	check.That(t, demosOnly(nil), "refuses its own")
	check.That(t, demosOnly(owned(demo.Name)), "refuses its own")
	check.That(t, !demosOnly(owned("My shop")), "takes another's")
	check.That(t, !demosOnly(owned(demo.Name, "My shop")), "takes another's")
}

// TestDemoHasVisitorsOnEachDay checks that no day up to yesterday lacks visitors, and that no event is in the future.
func TestDemoHasVisitorsOnEachDay(t *testing.T) {
	tier.OnlyLong(t)
	h := newHouse(t)
	p := &program{stdout: capture(t).write, running: h.store}
	must.OK(t, p.makeDemo(t.Context(), h.store))
	r := must.JSON[result.Report](t,
		h.must("report", "campaign", strconv.Itoa(demo.Campaign), "--interval=day", "--json"))
	check.That(t, !r.NewestEvent.After(r.GeneratedAt), "the newest event is of %s", r.NewestEvent)
	visitors, through := int64(0), r.GeneratedAt.Truncate(24*time.Hour) // the end of yesterday
	for _, point := range r.Series {
		sum := int64(0)
		for _, v := range point.Variations {
			sum += v.Visitors
		}
		check.That(t, sum != visitors || point.Time.After(through), "no visitors on the day before %s", point.Time)
		visitors = sum
	}
	must.That(t, len(r.Series) >= demo.Days, "%d days, to %s", len(r.Series), r.Series[len(r.Series)-1].Time)
	check.That(t, !r.Series[len(r.Series)-1].Time.Before(through), "%d days, to %s", len(r.Series),
		r.Series[len(r.Series)-1].Time)
}
