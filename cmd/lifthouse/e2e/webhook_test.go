package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"lifthouse/engine/enginetest"
	"lifthouse/engine/query"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// delivered is a message that the receiver got and has not answered yet.
type delivered struct {
	id, campaign, decision string
	answer                 chan struct{}
}

// TestKilledServersDeliverEachDecision starts two servers on one ClickHouse server, whose campaigns were decided while
// no server ran. Servers are killed after they sent a message and before the receiver answers. Each decision that the
// reports show arrives, and a decision that arrives again has the same id.
func TestKilledServersDeliverEachDecision(t *testing.T) {
	tier.OnlyLong(t)
	const campaigns, kills = 30, 5
	got := make(chan delivered)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		var m struct {
			Data struct {
				CampaignID int64
				Decision   struct{ Status string }
			}
		}
		body, _ := io.ReadAll(req.Body)
		err := json.Unmarshal(body, &m)
		check.That(t, err == nil, "%s: %v", body, err)
		d := delivered{
			req.Header.Get("webhook-id"), fmt.Sprint(m.Data.CampaignID), m.Data.Decision.Status,
			make(chan struct{}),
		}
		select {
		case got <- d:
			<-d.answer
		case <-t.Context().Done():
		}
	}))
	defer receiver.Close()
	r := rand.New(rand.NewPCG(3, 4))
	server := schematest.SharedServer(t)
	address := server.DatabaseAddress(server.CreateMigrated(t))
	expected := pastShop(t, address, receiver.URL, campaigns, r)
	serve := func() *process {
		return start(t, "serve", "--store="+address, "--webhook-private-addresses", "--secret-folder="+os.TempDir())
	}
	servers := []*process{serve(), serve()}
	ids, killed, again := map[string]string{}, 0, 0
	for len(ids) < len(expected) {
		d := <-got
		decision := d.campaign + " " + d.decision
		if id, known := ids[decision]; known {
			again++
			check.Equal(t, id, d.id, "ids of %s", decision)
		}
		check.That(t, expected[decision], "%s is not what the report says", decision)
		ids[decision] = d.id
		if killed < kills && r.IntN(3) == 0 {
			killed++
			for i := range servers {
				servers[i].kill()
				servers[i] = serve()
			}
		}
		close(d.answer)
	}
	check.That(t, again <= killed, "%d messages arrived again after %d kills", again, killed)
	t.Logf("%d decisions of %d campaigns, %d kills of both servers, %d messages arrived again", len(ids), campaigns, killed, again)
}

// pastShop declares campaigns that ran for 12 days, and stores their events as they were accepted then. It returns the
// decisions that reports show, as "campaign decision".
func pastShop(t *testing.T, address, hook string, campaigns int, r *rand.Rand) map[string]bool {
	t.Helper()
	const days = 12
	first := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -days)
	key := must.WriteFile(t, "webhook.key", "whsec_"+strings.Repeat("A", 32))
	conn := schematest.OpenConnection(t, address)
	site := catalogue.Website{
		ID: 1, Domain: "shop.example.com",
		Goals: []catalogue.Goal{{ID: 1, WebsiteID: 1, Name: "Purchase"}},
	}
	for i := range campaigns {
		site.Campaigns = append(site.Campaigns, catalogue.Campaign{
			ID: int64(i + 1), WebsiteID: 1, Name: fmt.Sprint("Campaign ", i+1), Type: "experiment", TargetMode: "live",
			Methodology: catalogue.Frequentist, PrimaryGoalID: 1,
			ControlShare: 50, SignificanceLevel: 95, Power: 80, MDE: 20,
			Variations: []catalogue.Variation{{ID: 1, Name: "New", Share: 50}},
			Initial:    catalogue.Initial{Active: true, StartDate: &catalogue.Date{Time: first.Add(-time.Hour)}},
		})
	}
	c := must.Get(catalogue.Open(t.Context(), conn))(t)
	account := catalogue.Account{
		ID: 1, Name: "Shop", Websites: []catalogue.Website{site},
		Webhooks: []catalogue.Webhook{
			{ID: 1, URL: hook, Events: []string{catalogue.EventDecisionChanged}, Format: catalogue.FormatStandard, SecretFile: key},
		},
	}
	must.Get(c.ApplyFile(t.Context(), catalogue.File{Accounts: []catalogue.Account{account}}, false))(t)
	must.OK(t, conn.Exec(t.Context(), "INSERT INTO catalogue SELECT * REPLACE (version + 1 AS version, {body:String} AS body) FROM catalogue WHERE kind = 'webhook' AND JSONHas(catalogue.body, 'createDate')",
		clickhouse.Named("body", `{"createDate":"2020-01-01T00:00:00Z","updateDate":"2020-01-01T00:00:00Z"}`)))
	id := uint64(0)
	for day := range days {
		var events []schema.Event
		for i := range campaigns {
			for visitor := range 400 {
				id++
				e := schema.Event{
					EventID: 2 * id, Time: first.AddDate(0, 0, day).Add(time.Duration(visitor) * time.Minute),
					WebsiteID: 1,
					Subject:   schema.SubjectCampaign, SubjectID: int64(i + 1), VisitorID: id,
					VariationID: int64(visitor % 2), Kind: schema.KindView,
				}
				events = append(events, e)
				rate := 0.1
				if visitor%2 == 1 {
					rate *= []float64{1, 2.2, 0.3}[i%3]
				}
				if r.Float64() < rate {
					e.EventID, e.Kind, e.GoalID, e.Time = e.EventID+1, schema.KindGoal, 1, e.Time.Add(time.Minute)
					events = append(events, e)
				}
			}
		}
		must.OK(t, schema.InsertEvents(t.Context(), conn, events, first.AddDate(0, 0, day).Add(23*time.Hour)))
	}
	e, _ := enginetest.Open(t, conn, c)
	expected := map[string]bool{}
	for i := range campaigns {
		p := must.Get(e.PlanReport(query.Request{AccountID: 1, SubjectID: int64(i + 1), Scorecard: true}))(t)
		report := must.Get(e.ComputeReport(t.Context(), p))(t)
		if status := string(report.Decision.Status); slices.Contains([]string{
			"ship", "rollBack", "noDifference",
			"invalid",
		}, status) {
			expected[fmt.Sprint(i+1, " ", status)] = true
		}
	}
	return expected
}
