package api_test

import (
	_ "embed"
	"flag"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"lifthouse/loadgen/population"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/outbox"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

var update = flag.Bool("update", false, "rewrite the examples of openapi.yaml")

// exampleShop is the small store that the document's examples are of.
//
//go:embed testdata/examples.yaml
var exampleShop string

func newExampleServer(t *testing.T) *server {
	t.Helper()
	s := newEmptyServer(t)
	s.apply(exampleShop)
	s.token = s.newToken(1, 0, catalogue.ScopeAdmin)
	start := time.Date(2025, 5, 1, 0, 0, 0, 0, time.UTC)
	simulated := population.SimpleCampaign{
		WebsiteID: 1, CampaignID: 12, GoalID: 3, Visitors: 4000, Start: start, Days: 14, MultipleExposures: 0.005,
		Seed: 12,
		Variations: []population.SimpleVariation{
			{ID: 0, Share: 50, ConversionRate: 0.06, MeanValue: 50},
			{ID: 1, Share: 50, ConversionRate: 0.1, MeanValue: 50},
		},
	}
	events := slices.Collect(simulated.GenerateEvents())
	kinds := []schema.Kind{
		schema.KindView, schema.KindClick, schema.KindSubmit, schema.KindCompletion,
		schema.KindConversion, schema.KindContact, schema.KindGoal,
	}
	for visitor := range 120 {
		experiment, variation := int64(0), int64(1)
		if visitor >= 60 {
			experiment, variation = 2, int64(visitor%2)
		}
		for step := range 1 + visitor%7 {
			e := shown(step, fmt.Sprint("visitor ", visitor), experiment, variation, kinds[step*(1+visitor%3)%7])
			e.Time = e.Time.AddDate(-1, 0, 0)
			events = append(events, e)
		}
	}
	ingests := s.newToken(1, 1, catalogue.ScopeIngest)
	s.PostEvents(ingests, labelledGoal).Send().RequireStatus(http.StatusOK)
	s.fold(events...)
	s.notify()
	s.note(`{"campaignId":12,"kind":"annotation","startsAt":"2025-05-08T00:00:00Z","endsAt":"2025-05-10T00:00:00Z",` +
		`"text":"The price of the bundle was raised."}`)
	return s
}

// labelledGoal is a goal with names of its own, which belongs to no campaign.
const labelledGoal = `{"eventId":"l1","time":"2025-05-10T12:00:00Z","websiteId":1,"visitor":"l","event":"goal",` +
	`"goalId":4,"attributes":{"plan":"pro"},"properties":{"payment":"paypal","weight":1.25},` +
	`"items":[{"product":"SKU-7","category":"Shoes","price":39.95}]}`

// notify stores a message about the campaign and its delivery.
func (s *server) notify() {
	s.t.Helper()
	at := time.Date(2025, 5, 15, 9, 0, 0, 0, time.UTC)
	data := outbox.Data{
		Name: "Free delivery banner", Text: "The campaign was stopped by token 2 Ann.",
		By: "token 2 Ann",
	}
	m := outbox.NewMessage(outbox.MessageID(outbox.NewIdentity(1, "example")), 1, catalogue.EventCampaignStopped, schema.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 12}, "", at, data)
	must.Get(s.outbox.WriteMessages(s.t.Context(), []outbox.Message{m}))(s.t)
	must.OK(s.t,
		s.outbox.RecordDeliveries(s.t.Context(),
			outbox.Delivery{
				AccountID: 1, WebhookID: 1, MessageID: m.ID, At: at, Outcome: outbox.Delivered, Status: 200,
			}))
}

var (
	exampleLine = regexp.MustCompile(`(?m)^( *)# example: (GET|POST) (\S+)(?: as (nobody|reader))?(?: ([a-z]+/[a-z+]+))?(?: << (.*))?\n *example: .*$`)
	anInstant   = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z`)
	aVersion    = regexp.MustCompile(`"version":"[\w-]{22}"`)
	aNote       = regexp.MustCompile(`note_[0-9a-f]{32}`)
	aMinute     = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d`)
)

// fixTimes replaces the timestamps of this run with a constant, and the versions of its answers and the ids of notes.
func fixTimes(body string, since time.Time) string {
	body = aMinute.ReplaceAllString(body, "2025-06-01 09:00")
	body = aNote.ReplaceAllString(body, "note_0c3f5a7e91b2d4c6a8e0f1234567890a")
	body = aVersion.ReplaceAllString(body, `"version":"kX0dS3uQ1mZt5cVw2nJb7A"`)
	return anInstant.ReplaceAllStringFunc(body, func(text string) string {
		if at, err := time.Parse(time.RFC3339Nano, text); err == nil && at.After(since) {
			return "2025-06-01T09:00:00Z"
		}
		return text
	})
}

func TestExamplesAreRealAnswers(t *testing.T) {
	since := time.Now().Add(-time.Hour)
	s := newExampleServer(t)
	reader := s.newToken(1, 0, catalogue.ScopeRead)
	is := must.Get(os.ReadFile(documentFile))(t)
	examples := 0
	want := exampleLine.ReplaceAllStringFunc(string(is), func(lines string) string {
		examples++
		part := exampleLine.FindStringSubmatch(lines)
		token := map[string]string{"nobody": "", "reader": reader, "": s.token}[part[4]]
		request := s.Request(part[2], part[3], part[6]).Type("application/json").Token(token)
		request.Header("X-Request-Id", "an-example")
		if part[5] != "" {
			request.Header("Accept", part[5])
		}
		response := request.Send()
		text := strings.TrimSpace(fixTimes(response.Text, since))
		if !strings.Contains(response.Header.Get("Content-Type"), "json") {
			text = strconv.Quote(text)
		}
		marker, _, _ := strings.Cut(lines, "\n")
		return marker + "\n" + part[1] + "example: " + text
	})
	check.That(t, examples >= 20, "%d examples; is the marker read as it is written?", examples)
	if want == string(is) {
		return
	}
	if *update {
		must.OK(t, os.WriteFile(documentFile, []byte(want), 0o644)) //nolint:gosec // a source file
		return
	}
	given, real := strings.Split(string(is), "\n"), strings.Split(want, "\n")
	for i := range min(len(given), len(real)) {
		check.Equal(t, given[i], real[i], "line %d; go test ./api -update writes it", i+1)
	}
}

func TestTheDocumentIsValid(t *testing.T) {
	c := must.Get(theContract())(t)
	must.OK(t, c.doc.Validate(t.Context(), openapi3.SetRegexCompiler(compile), openapi3.EnableExamplesValidation()))
}
