package api_test

import (
	_ "embed"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"lifthouse/api"
	"lifthouse/api/results"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// askedShop has a campaign with a key, goals with and without one, and a widget with an experiment.
//
//go:embed testdata/asked.yaml
var askedShop string

// newAskedServer serves a shop whose events have own attributes, properties and lines.
func newAskedServer(t *testing.T, change ...func(*api.Options)) *server {
	t.Helper()
	s := newEmptyServer(t, change...)
	s.apply(askedShop)
	s.token = s.newToken(1, 0, catalogue.ScopeRead)
	var lines strings.Builder
	write := func(visitor, more string) {
		fmt.Fprintf(&lines, `{"eventId":"e%d","websiteId":1,"visitor":%q,"campaignId":12,%s}`+"\n", lines.Len(), visitor, more)
	}
	for i := range 60 {
		visitor := fmt.Sprint("v", i)
		device := []string{"mobile", "desktop"}[i/2%2]
		plan := []string{"pro", "free"}[i/4%2]
		write(visitor, fmt.Sprintf(`"time":"2026-05-01T12:00:00Z","event":"view","variationId":%d,"device":%q,"attributes":{"plan":%q}`,
			i%2, device, plan))
		if i%3 > 0 {
			write(visitor, fmt.Sprintf(`"time":"2026-05-02T12:00:00Z","event":"goal","goalId":4,"variationId":%d`, i%2))
		}
		if i%3 == 1 {
			write(visitor, fmt.Sprintf(`"time":"2026-05-03T12:00:00Z","event":"goal","goalId":3,"value":%d,"variationId":%d,`+
				`"properties":{"payment":"paypal","weight":%d},"items":[{"product":"SKU-%d","category":"Shoes","price":10}]`,
				20+i, i%2, i, i%5))
		}
	}
	s.PostEvents(s.newToken(1, 1, catalogue.ScopeIngest), lines.String()).Send().RequireStatus(http.StatusOK)
	must.Get(s.facts.AwaitNoted(t.Context()))(t)
	return s
}

// Ask sends questions, each the JSON of an object.
func (s *server) Ask(questions ...string) *requestBuilder {
	return s.Post("/v1/query", `{"questions":[`+strings.Join(questions, ",")+`]}`).Type("application/json")
}

// answers returns the answers to questions.
func (b *requestBuilder) answers() []json.RawMessage {
	b.server.t.Helper()
	var found struct{ Results []json.RawMessage }
	b.Send().RequireStatus(http.StatusOK).JSON(&found)
	return found.Results
}

// membersOf returns the members of an object.
func membersOf(t *testing.T, text json.RawMessage) map[string]json.RawMessage {
	t.Helper()
	return must.JSON[map[string]json.RawMessage](t, text)
}

func TestAnswersAreThoseOfTheReports(t *testing.T) {
	s := newAskedServer(t)
	questions := []struct{ question, path string }{
		{`{"campaignId":12}`, "/v1/campaigns/12/results?"},
		{
			`{"campaignId":"12","metric":"sum(purchase.value) / count(purchase)"}`,
			"/v1/campaigns/12/results?metric=" + url.QueryEscape("sum(purchase.value) / count(purchase)"),
		},
		{
			`{"campaignId":12,"metric":"sum(purchase.items.revenue where items.category = 'Shoes')","visitors":"plan = 'pro'","dimension":"device"}`,
			"/v1/campaigns/12/results?dimension=device&visitors=" + url.QueryEscape("plan = 'pro'") + "&metric=" +
				url.QueryEscape("sum(purchase.items.revenue where items.category = 'Shoes')"),
		},
		{
			`{"campaignId":12,"metric":"converted(#3)","cap":100,"conversionWindow":"7d","from":"2026-04-30","to":"2026-05-20","interval":"day"}`,
			"/v1/campaigns/12/results?goal=3&compareMetric=goalConversionRate&cap=100&conversionWindow=7d&filters[dateFrom]=2026-04-30&filters[dateTo]=2026-05-20&interval=day",
		},
		{`{"campaignId":12,"dimension":"plan"}`, "/v1/campaigns/12/results?dimension=plan"},
		{`{"widgetId":7,"metric":"count(any)"}`, "/v1/widgets/7/results?metric=count(any)"},
		{`{"widgetId":7,"experimentId":2}`, "/v1/widgets/7/experiments/2/results?"},
	}
	var asked []string
	for _, q := range questions {
		asked = append(asked, q.question)
	}
	answers := s.Ask(asked...).answers()
	must.Equal(t, len(answers), len(questions))
	for i, q := range questions {
		response := s.Get(q.path).Send().RequireStatus(http.StatusOK)
		report := membersOf(t, json.RawMessage(withoutClock(response.Text)))
		answer := membersOf(t, json.RawMessage(withoutClock(string(answers[i]))))
		version := must.JSON[string](t, answer["version"])
		check.Equal(t, `W/"`+version+`"`, response.Header.Get("ETag"), "%s", q.question)
		checks := membersOf(t, report["checks"])
		check.Equal(t, string(membersOf(t, answer["checks"])["warnings"]), string(checks["warnings"]), "%s", q.question)
		for _, name := range []string{"conclusion", "scorecard", "decision"} {
			check.That(t, answer[name] == nil, "%s has %s", q.question, name)
		}
		for _, name := range []string{"version", "checks"} {
			delete(answer, name)
		}
		for _, name := range []string{"conclusion", "checks"} {
			delete(report, name)
		}
		for name := range report {
			check.Equal(t, string(answer[name]), string(report[name]), "%s: %s", q.question, name)
		}
		check.Equal(t, len(answer), len(report), "%s", q.question)
	}
}

func TestUnchangedAnswers(t *testing.T) {
	s := newAskedServer(t)
	const question = `"campaignId":12,"metric":"count(purchase)"`
	first := s.Ask("{" + question + "}").answers()
	version := string(membersOf(t, first[0])["version"])
	asked := []string{
		"{" + question + `,"ifVersion":` + version + "}", "{" + question + `,"ifVersion":"other"}`,
		`{"campaignId":12,"metric":"sum(purchase.value)","ifVersion":` + version + "}",
	}
	answers := s.Ask(asked...).answers()
	check.Equal(t, string(answers[0]), `{"unchanged":true}`)
	check.Equal(t, withoutClock(string(answers[1])), withoutClock(string(first[0])))
	check.That(t, membersOf(t, answers[2])["variations"] != nil, "another question is unchanged: %s", answers[2])
	s.fold(at(90, "new", 0, schema.KindView, 0))
	again := s.Ask(asked[0]).answers()
	check.That(t, membersOf(t, again[0])["unchanged"] == nil, "new events change no answer: %s", again[0])
	check.That(t, string(membersOf(t, again[0])["version"]) != version, "new events have the version %s", version)
}

// wrongQuestions are questions with the faults of their problems: name, value and detail.
var wrongQuestions = []struct{ question, want string }{
	{`{"campaignId":12,"metric":"count(purchase where"}`, `metric "count(purchase where": at character 21: expected a field, such as value, items.category, or the name of a property, found the end`},
	{`{"campaignId":12,"metric":"count(purchse)"}`, `metric "count(purchse)": at character 7: unknown goal "purchse": purchase, or one of add-to-cart, signup`},
	{`{"campaignId":12,"metric":"count(purchase where items.category > 'x')"}`, `metric "count(purchase where items.category > 'x')": at character 37: items.category is a text: it can be compared with =, !=, in and like`},
	{`{"campaignId":12,"metric":"sum(purchase)"}`, `metric "sum(purchase)": at character 13: sum needs a field after the goal, such as purchase.value`},
	{`{"campaignId":12,"metric":"sum(purchase.colour)"}`, `colour`},
	{`{"campaignId":12,"metric":"count(purchase where weight = 'x')"}`, `weight is a number`},
	{`{"campaignId":12,"metric":"sum(purchase.value) / count(purchase) / count(any)"}`, `one quantity, or a ratio of two`},
	{`{"campaignId":12,"metric":"count(purchase) + count(any)"}`, `one quantity, or a ratio of two`},
	{`{"campaignId":12,"metric":"funnel(purchase, add-to-cart, purchase)"}`, `steps 1 and 3 are both of purchase: write converted(purchase at least 2)`},
	{`{"campaignId":12,"metric":"count(purchase) within 7d","conversionWindow":"7d"}`, `write one of them: within, or conversionWindow`},
	{`{"campaignId":12,"visitors":"plen = 'pro'"}`, `visitors "plen = 'pro'": at character 1: unknown attribute "plen": plan, or one of`},
	{`{"campaignId":12,"visitors":"device > 'pro'"}`, `at character 8`},
	{`{"campaignId":12,"metric":""}`, `metric "": must not be empty`},
	{`{"campaignId":12,"dimension":"plen"}`, `dimension "plen": must be one of browser, `},
	{`{"campaignId":12,"dimension":"de vice"}`, `dimension "de vice": must be one of browser, `},
	{`{"campaignId":12,"metrik":"x"}`, `metrik "x": unknown field; did you mean metric?`},
	{`{"campaignId":12,"metrik":null}`, `metrik "null": unknown field; did you mean metric?`},
	{`{"campaignId":12,"metric":["x"]}`, `metric "[\"x\"]": must be a text or a number`},
	{`{"campaignId":12,"metric":true}`, `metric "true": must be a text or a number`},
	{`{"campaignId":12,"cap":1,"cap":2}`, `cap "2": given twice`},
	{`{"campaignId":12,"cap":-1}`, `cap "-1": `},
	{`{"campaignId":12,"from":"yesterday"}`, `from "yesterday": must be a date`},
	{`{"campaignId":12,"from":"2026-05-02","to":"2026-05-01"}`, `to "2026-05-01": must be after the start of the dates`},
	{`{"campaignId":12,"interval":"year"}`, `interval "year": must be one of hour, day, week`},
	{`{"campaignId":"chekout"}`, `campaignId "chekout": no campaign has the key "chekout"`},
	{`{"campaignId":12,"widgetId":7}`, `campaignId "12": omit campaignId, or widgetId and experimentId`},
	{`{"metric":"count(any)"}`, `campaignId "": must be the id or the key of a campaign; or give widgetId`},
	{`{"widgetId":"x"}`, `widgetId "x": must be a number; digits only`},
	{`{"widgetId":7,"dimension":"device"}`, `dimension "device": a widget's own results have no breakdown: omit dimension, or add experimentId`},
	{`7`, ` "7": must be an object with the fields of a question`},
}

func TestAWrongQuestionIsAProblemInItsPlace(t *testing.T) {
	s := newAskedServer(t)
	asked := []string{`{"campaignId":12,"metric":"count(any)"}`}
	for _, wrong := range wrongQuestions {
		asked = append(asked, wrong.question)
	}
	asked = append(asked, `{"campaignId":98}`, `{"campaignId":20,"metric":"count(#3)"}`, `{"campaignId":"checkout"}`)
	answers := s.Ask(asked...).Undocumented().answers()
	must.Equal(t, len(answers), len(asked))
	for i, wrong := range wrongQuestions {
		var p problemBody
		must.OK(t, json.Unmarshal(answers[i+1], &p))
		check.Equal(t, p.Status, http.StatusBadRequest, "%s: %s", wrong.question, answers[i+1])
		check.Equal(t, p.Instance, "/v1/query", "%s", wrong.question)
		must.Equal(t, len(p.Errors), 1, "%s: %s", wrong.question, answers[i+1])
		e := p.Errors[0]
		check.Equal(t, e.In, "body", "%s", wrong.question)
		prefix := fmt.Sprintf("questions[%d]", i+1)
		name, found := strings.CutPrefix(e.Name, prefix)
		check.That(t, found, "%s: the name is %s", wrong.question, e.Name)
		check.Contains(t, fmt.Sprintf("%s %q: %s", strings.TrimPrefix(name, "."), e.Value, e.Detail), wrong.want,
			"%s: %s", wrong.question, answers[i+1])
	}
	last := len(answers) - 3
	check.Contains(t, string(answers[last]), `"status":404,"detail":"campaign 98 not found"`)
	check.Contains(t, string(answers[last+1]), `unknown goal #3`)
	for _, i := range []int{0, last + 2} {
		check.That(t, membersOf(t, answers[i])["variations"] != nil, "%s is not answered: %s", asked[i], answers[i])
	}
}

type problemBody struct {
	Status   int
	Instance string
	Code     string
	Errors   []struct{ In, Name, Value, Detail string }
}

func TestAllFaultsOfAQuestion(t *testing.T) {
	s := newAskedServer(t)
	answers := s.Ask(`{"campaignId":12,"metric":"count(purchse where valu > 1)","visitors":"plen = 'x'","cap":"x",` +
		`"dimension":"plen","interval":"year","colour":1}`).Undocumented().answers()
	var p problemBody
	must.OK(t, json.Unmarshal(answers[0], &p))
	var names []string
	for _, e := range p.Errors {
		names = append(names, strings.TrimPrefix(e.Name, "questions[0]."))
	}
	slices.Sort(names)
	check.Equal(t, strings.Join(names, " "), "cap colour dimension interval metric metric visitors", "%s", answers[0])
	report := s.Get("/v1/campaigns/12/results?cap=x&metric=count(purchse)&colour=1").Send()
	for _, name := range []string{"cap", "metric", "colour"} {
		check.Contains(t, report.Text, `"name":"`+name+`"`, "%v", report)
	}
}

func TestABodyWithoutQuestionsIsRefused(t *testing.T) {
	s := newAskedServer(t)
	hundred := strings.Repeat(`{"campaignId":12},`, 100)
	for body, want := range map[string]string{
		``:                                   `invalid_body`,
		`{"questions":[}`:                    `invalid_body`,
		`[]`:                                 `must be an object such as {\"questions\"`,
		`{}`:                                 `"name":"questions","value":"","detail":"must be an array of 1 to 100 questions"`,
		`{"questions":[]}`:                   `must be an array of 1 to 100 questions`,
		`{"questions":{"campaignId":12}}`:    `must be an array of 1 to 100 questions`,
		`{"questions":[` + hundred + `{}]}`:  `must be an array of 1 to 100 questions`,
		`{"questions":[{}],"question":[{}]}`: `"name":"question","value":"","detail":"unknown field; did you mean questions?"`,
		`{"questions":[{}],"questions":[]}`:  `given twice`,
		"{\"questions\":[{\"metric\":\"\xff\"}]}": `must be UTF-8`,
	} {
		response := s.Post("/v1/query", body).Type("application/json").Send().CheckStatus(http.StatusBadRequest)
		check.Contains(t, response.Text, want, "%.80s: %v", body, response)
	}
	s.Post("/v1/query", `{}`).Type("text/plain").Send().CheckStatus(http.StatusUnsupportedMediaType)
	large := `{"questions":[{"campaignId":12}` + strings.Repeat(" ", 64<<10) + `]}`
	s.Post("/v1/query", large).Type("application/json").Send().CheckStatus(http.StatusRequestEntityTooLarge)
	s.Post("/v1/query?colour=red", `{"questions":[{"campaignId":12}]}`).Type("application/json").Send().
		CheckStatus(http.StatusBadRequest)
	s.Get("/v1/query").Send().CheckStatus(http.StatusMethodNotAllowed)
}

func TestShareLinksAskAboutTheirSubject(t *testing.T) {
	s := newAskedServer(t)
	until := time.Now().Add(time.Hour)
	shared := must.Get(shareToken(s, schema.SubjectIDs{CampaignID: 12}, until))(t)
	answers := s.Ask(`{"campaignId":12,"metric":"count(purchase)"}`, `{"campaignId":"checkout"}`, `{"widgetId":7}`).
		Token(shared).answers()
	check.That(t, membersOf(t, answers[0])["variations"] != nil, "%s", answers[0])
	check.Contains(t, string(answers[1]), "no campaign has the key")
	check.Contains(t, string(answers[2]), "widget 7 not found")
	experiment := must.Get(shareToken(s, schema.SubjectIDs{WidgetID: 7, ExperimentID: 2}, until))(t)
	answers = s.Ask(`{"widgetId":7,"experimentId":2}`, `{"widgetId":7}`).Token(experiment).answers()
	check.That(t, membersOf(t, answers[0])["variations"] != nil, "%s", answers[0])
	check.Contains(t, string(answers[1]), "widget 7 not found")
	bound := s.newToken(1, 2, catalogue.ScopeRead)
	answers = s.Ask(`{"campaignId":12}`, `{"campaignId":"checkout"}`, `{"campaignId":20}`).Token(bound).answers()
	check.Contains(t, string(answers[0]), "campaign 12 not found")
	check.Contains(t, string(answers[1]), "no campaign has the key")
	check.That(t, membersOf(t, answers[2])["variations"] != nil, "%s", answers[2])
	s.Ask(`{"campaignId":12}`).Token(s.newToken(1, 1, catalogue.ScopeIngest)).Send().CheckStatus(http.StatusForbidden)
}

func shareToken(s *server, of schema.SubjectIDs, until time.Time) (string, error) {
	secret, _, err := s.catalogue.CreateToken(s.t.Context(), catalogue.Token{
		AccountID: 1, Scopes: []catalogue.Scope{catalogue.ScopeShare}, Shared: &of, ExpiresAt: &until,
	})
	return secret, err
}

func TestAnswersAsOneTable(t *testing.T) {
	s := newAskedServer(t)
	questions := []string{
		`{"campaignId":12}`, `{"campaignId":12,"metric":"count(purchase where value > 1)","dimension":"plan"}`,
		`{"campaignId":12,"metric":"count(=x)"}`, `{"campaignId":12,"ifVersion":"x"}`,
	}
	response := s.Ask(questions...).Header("Accept", "text/csv").Send().RequireStatus(http.StatusOK)
	rows := must.Get(csv.NewReader(strings.NewReader(response.Text)).ReadAll())(t)
	header := rows[0]
	cell := func(row int, name string) string { return rows[row][slices.Index(header, name)] }
	check.Equal(t, header[0], "question")
	check.Equal(t, header[len(header)-1], "problem")
	var numbers []string
	for _, row := range rows[1:] {
		numbers = append(numbers, row[0])
	}
	check.Equal(t, strings.Join(numbers, " "), "1 1 2 2 2 2 2 2 3 4")
	check.Equal(t, cell(3, "question.metric"), "count(purchase where value > 1)")
	check.Equal(t, cell(1, "question.metric"), "")
	check.That(t, cell(3, "metric.value") != "", "the table has no value of the metric")
	check.Contains(t, cell(9, "problem"), `questions[2].metric "count(=x)": at character 7`)
	check.Contains(t, cell(10, "problem"), "a table has no versions: omit ifVersion")
	alone := s.Get("/v1/campaigns/12/results?dimension=plan&metric="+url.QueryEscape("count(purchase where value > 1)")).Header("Accept", "text/csv").Send()
	own := must.Get(csv.NewReader(strings.NewReader(alone.Text)).ReadAll())(t)
	for i, row := range own[1:] {
		for k, name := range own[0] {
			check.Equal(t, cell(3+i, name), row[k], "row %d, %s", i, name)
		}
	}
}

// TestEqualQuestionsAreComputedOnce counts the computations of a batch, which no cache answers.
func TestEqualQuestionsAreComputedOnce(t *testing.T) {
	s := newAskedServer(t, func(o *api.Options) { o.ResultsAge = 0 })
	before := s.outcomes("miss")
	answers := s.Ask(`{"campaignId":12,"metric":"count(purchase where value > 1 and weight > 2)"}`,
		`{"campaignId":"12","metric":"count( #3 where weight>2 and value>1.0 )"}`, `{"campaignId":12}`).answers()
	check.Equal(t, s.outcomes("miss")-before, 2, "computations")
	check.Equal(t, withoutClock(string(answers[0])), withoutClock(string(answers[1])))
}

// TestAQuestionCountsAsARequest has a limit of 5 requests per second, with bursts of 10.
func TestAQuestionCountsAsARequest(t *testing.T) {
	s := newAskedServer(t, func(o *api.Options) { o.TokenRate = 5 })
	many := slices.Repeat([]string{`{"campaignId":12}`}, 9)
	s.Ask(many...).Token(s.newToken(1, 0, catalogue.ScopeRead)).Send().CheckStatus(http.StatusOK)
	token := s.newToken(1, 0, catalogue.ScopeRead)
	s.Ask(slices.Repeat(many, 3)...).Token(token).Send().CheckStatus(http.StatusOK)
	refused := s.Ask(slices.Repeat(many, 3)...).Token(token).Send().CheckStatus(http.StatusTooManyRequests)
	check.Equal(t, refused.Code(), "rate_limited")
}

func TestNamesOfAWebsite(t *testing.T) {
	s := newAskedServer(t)
	var names results.Names
	s.Get("/v1/names?websiteId=1").Send().RequireStatus(http.StatusOK).JSON(&names)
	var goals, own, properties, fields []string
	for _, g := range names.Goals {
		goals = append(goals, g.Text+" is "+g.Name)
	}
	for _, a := range names.Attributes {
		if a.Own {
			own = append(own, a.Name)
		}
	}
	for _, p := range names.Properties {
		properties = append(properties, p.Name+" "+strings.Join(p.Types, " "))
	}
	for _, f := range names.Fields {
		fields = append(fields, f.Name+" "+f.Type)
	}
	check.Equal(t, strings.Join(goals, ", "), "purchase is Purchase, add-to-cart is Add to cart, signup is Signup")
	check.Equal(t, strings.Join(own, ", "), "plan")
	check.Equal(t, len(names.Attributes), 16)
	check.Equal(t, strings.Join(properties, ", "), "payment text, weight number")
	check.Contains(t, strings.Join(fields, ", "), "items.revenue number")
	check.Contains(t, strings.Join(fields, ", "), "items.category text")
	for _, m := range names.Metrics { // each can be asked, about a goal in the place of all
		expression := strings.ReplaceAll(m.Expression, "any", "purchase")
		question := must.Get(json.Marshal(map[string]any{"campaignId": 12, "metric": expression}))(t)
		answers := s.Ask(string(question)).answers()
		check.That(t, membersOf(t, answers[0])["variations"] != nil, "%s: %s", expression, answers[0])
	}
	several := s.Get("/v1/names").Send().CheckStatus(http.StatusBadRequest)
	check.Equal(t, several.Code(), "website_required")
	s.Get("/v1/names?websiteId=9").Send().CheckStatus(http.StatusNotFound)
}

func TestCompletionOfQuestions(t *testing.T) {
	s := newAskedServer(t)
	for _, test := range []struct{ text, at, want string }{
		{"sum(pur", "", `{"from":4,"candidates":[{"text":"purchase","kind":"goal"}]}`},
		{"sum(purchase.val) / count(any)", "16", `{"from":13,"candidates":[{"text":"value","kind":"field"}]}`},
		{"count(purchase where pay", "", `{"from":21,"candidates":[{"text":"payment","kind":"property"}]}`},
		{"count(any) for pla", "", `{"from":15,"candidates":[{"text":"plan","kind":"attribute"}]}`},
		{"count(any) for plan = 'pr", "", `{"from":22,"candidates":[],"field":"plan","source":"attribute","prefix":"pr"}`},
		{"count(any) b", "1000", `{"from":11,"candidates":[{"text":"by","kind":"keyword"}]}`},
		{"count(§", "", `{"from":6,"candidates":[]}`},
	} {
		query := url.Values{"websiteId": {"1"}, "text": {test.text}}
		if test.at != "" {
			query.Set("at", test.at)
		}
		response := s.Get("/v1/complete?" + query.Encode()).Send().RequireStatus(http.StatusOK)
		check.Equal(t, strings.TrimSpace(response.Text), test.want, "%s", test.text)
	}
	s.Get("/v1/complete?websiteId=1&at=-1").Send().CheckStatus(http.StatusBadRequest)
}

func TestValuesOfOwnAttributes(t *testing.T) {
	s := newAskedServer(t)
	const path = "/v1/campaigns/12/dimensions/"
	values := s.Get(path + "plan").Send().RequireStatus(http.StatusOK)
	check.Contains(t, values.Text, `"dimension":"plan"`)
	check.Contains(t, values.Text, `"values":[{"value":"pro","visitors":32},{"value":"free","visitors":28}]`)
	unknown := s.Get(path + "plen?limit=0").Send().CheckStatus(http.StatusBadRequest)
	check.Contains(t, unknown.Text, `"in":"path","name":"name","value":"plen","detail":"must be one of browser,`)
	check.Contains(t, unknown.Text, `"name":"limit"`)
}

// TestRangeOfAMetricDecidesWhoIsMature asks for a range of ages longer than the time since most first views.
func TestRangeOfAMetricDecidesWhoIsMature(t *testing.T) {
	s := newAskedServer(t)
	now := time.Now().UTC().Truncate(time.Millisecond)
	var events []schema.Event
	for i := range 20 {
		e := at(0, fmt.Sprint("late", i), int64(i%2), schema.KindView, 0)
		e.Time = now.Add(-48 * time.Hour)
		events = append(events, e)
	}
	s.fold(events...)
	of := func(metric string) (r result.Report) {
		s.Get("/v1/campaigns/12/results?metric=" + url.QueryEscape(metric)).Send().RequireStatus(http.StatusOK).JSON(&r)
		return r
	}
	all := of("count(purchase where value > 0)")
	mature := of("count(purchase where value > 0) within 7d")
	check.Equal(t, all.Totals.Visitors, 80)
	check.Equal(t, mature.Totals.Visitors, 60)
	must.That(t, mature.ConversionWindow != nil, "the report has no range of ages")
	check.Equal(t, mature.ConversionWindow.To, "168h")
}

func TestToolsOfQuestions(t *testing.T) {
	s := newAskedServer(t)
	session := s.connected(s.newToken(1, 0, catalogue.ScopeRead))
	names := call(t, session, "get_names", `{"websiteId":1}`)
	check.Contains(t, names.text, `"properties":[{"name":"payment","types":["text"]},{"name":"weight","types":["number"]}]`)
	asked := call(t, session, "ask", `{"campaignId":12,"questions":["count( purchase )  for plan = 'pro'","count(purchse)",`+
		`"sum(purchase.items.revenue) split items.product","converted(purchase) by device, plan","max(purchase.value)"]}`)
	var found struct {
		CampaignID int64
		Answers    []struct {
			Question, Problem string
			Sentences         []string
			Holds             *bool
		}
	}
	must.OK(t, json.Unmarshal([]byte(asked.text), &found), "%s", asked.text)
	must.Equal(t, len(found.Answers), 5, "%s", asked.text)
	check.Equal(t, found.CampaignID, 12)
	check.Equal(t, found.Answers[0].Question, "count(purchase) for plan = 'pro'")
	sentences := strings.Join(found.Answers[0].Sentences, "\n")
	check.Contains(t, sentences, "Control: goals per visitor of Purchase 0.31")
	check.Contains(t, sentences, "New against Control: Describes: evidence needs 7 full days.")
	must.That(t, found.Answers[0].Holds != nil, "%s", asked.text)
	check.That(t, !*found.Answers[0].Holds, "%s", asked.text)
	check.Equal(t, found.Answers[1].Problem, `at character 7: unknown goal "purchse": purchase, or one of add-to-cart, signup`)
	check.Contains(t, strings.Join(found.Answers[2].Sentences, "\n"), "items.product SKU-1: New: ")
	check.Contains(t, strings.Join(found.Answers[3].Sentences, "\n"), "device,plan mobile · pro: ")
	check.Contains(t, strings.Join(found.Answers[4].Sentences, "\n"), "of them with a value.")
	for arguments, want := range map[string]string{
		`{"campaignId":12,"questions":[]}`:                     `questions: "0": must be 1 to 20 texts`,
		`{"questions":["count(any)"]}`:                         `campaignId: "": must be the id or the key of a campaign`,
		`{"campaignId":98,"questions":["count(any)"]}`:         `campaign 98 not found`,
		`{"campaignId":"layout","questions":["count(any)"]}`:   `no campaign has the key "layout"`,
		`{"campaignId":12,"questions":["count(any)"],"top":1}`: `top: "1": unknown parameter`,
	} {
		answer := call(t, session, "ask", arguments)
		check.That(t, answer.isError, "%s is answered", arguments)
		check.Contains(t, answer.text, want, "%s", arguments)
	}
}
