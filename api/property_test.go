package api_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"pgregory.net/rapid"

	"lifthouse/api"
	queries "lifthouse/engine/query"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
	"lifthouse/schema/schematest/worlds"
)

// asker makes valid and invalid requests from the OpenAPI document.
type asker struct {
	worlds.Rand
	contract *contract
	tokens   []string // one that may everything first
	source   string   // key of a source
}

// ask is a raw request. A valid one has an expected status.
type ask struct {
	text  string
	right bool
}

func (a *asker) chance(percent int) bool { return a.IntN(100) < percent }

// request returns a request; three of five are valid.
func (a *asker) request() ask {
	path := worlds.Pick(a, a.contract.paths...)
	// its body has no events
	others := []string{"/shares", "/declarations", "/v1/query", "/v1/notes", "/v1/rates"}
	for path.item.Get == nil && (path.item.Post == nil || slices.Contains(others, path.template)) ||
		strings.HasPrefix(path.template, "/v1/readouts/") || // there are none
		strings.HasPrefix(path.template, "/v1/pictures") {
		path = worlds.Pick(a, a.contract.paths...)
	}
	method := http.MethodGet
	operation := path.item.Get
	if operation == nil {
		method, operation = http.MethodPost, path.item.Post
	}
	target := a.target(path)
	var query []string
	for _, parameter := range operation.Parameters {
		p := parameter.Value
		if p.In == openapi3.ParameterInQuery && (p.Name == "websiteId" || a.chance(20)) {
			query = append(query, a.rightly(p)...)
		}
	}
	asksFor := func(name string) bool {
		return slices.ContainsFunc(query, func(q string) bool { return strings.HasPrefix(q, name+"=") })
	}
	filters := strings.Join(query, "&")
	hasComplement := strings.Contains(filters, "device") && !strings.Contains(filters, "zScore")
	query = slices.DeleteFunc(query, func(q string) bool { // a curve needs old visitors, and has no breakdown
		return strings.HasPrefix(q, "curveDays=") || strings.HasPrefix(q, "curve=") && asksFor("dimension") ||
			strings.HasPrefix(q, "complement=") && !hasComplement
	})
	if strings.HasSuffix(path.template, "/plan") {
		query = a.planned(query)
	}
	if path.template == "/v1/log" { // no such campaign, two subjects, or a key of no entry
		query = slices.DeleteFunc(query, func(q string) bool {
			name, _, _ := strings.Cut(q, "=")
			return slices.Contains([]string{"campaignId", "widgetId", "experimentId", "after"}, name)
		})
	}
	if asksFor("from") { // a period must not end before it starts
		query = slices.DeleteFunc(query, func(q string) bool { return strings.HasPrefix(q, "to=") })
	}
	if file, isTable := strings.CutPrefix(target, "/v1/tables/"); isTable {
		name, _, _ := strings.Cut(file, ".")
		query = slices.DeleteFunc(query, func(q string) bool {
			parameter, _, _ := strings.Cut(q, "=")
			return !slices.Contains(queries.TableParameters(name), parameter)
		})
	}
	if strings.HasSuffix(path.template, "/results") || strings.HasSuffix(path.template, "/visitors.parquet") {
		query = oneMetric(query)
	}
	if asksFor("since") { // what no longer matches would be missed
		query = slices.DeleteFunc(query, func(q string) bool {
			name, _, _ := strings.Cut(q, "=")
			return slices.Contains([]string{"active", "decision", "owner", "tag"}, name)
		})
	}
	token := a.tokens[0]
	if operation.RequestBody != nil {
		token = a.tokens[2]
	}
	headers := []string{"Host: lifthouse", "Authorization: Bearer " + token}
	if method == http.MethodGet && a.chance(20) {
		method = http.MethodHead
	}
	if success := operation.Responses.Status(http.StatusOK); success != nil && a.chance(25) {
		headers = append(headers, "Accept: "+worlds.Pick(a, slices.Sorted(maps.Keys(success.Value.Content))...))
	}
	wrong := a.chance(40)
	if wrong {
		for range 1 + a.IntN(2) {
			method, target, query, headers = a.mutated(operation, method, target, query, headers)
		}
	}
	a.Shuffle(len(query), func(i, j int) { query[i], query[j] = query[j], query[i] })
	if len(query) > 0 {
		target += "?" + strings.Join(query, "&")
	}
	body := ""
	switch {
	case operation.RequestBody != nil:
		body = a.events()
		if a.chance(30) {
			wrong, body = true, worlds.Pick(a, body[:a.IntN(len(body))], strings.ReplaceAll(body, "view", "\xff"),
				"["+body, strings.Repeat("{}\n", 200), "\x1f\x8b", strings.ReplaceAll(body, "1", "9e99"))
		}
		headers = append(headers, "Content-Type: "+worlds.Pick(a, "application/x-ndjson", "text/plain"),
			fmt.Sprintf("Content-Length: %d", len(body)))
	case a.chance(5):
		body = worlds.Pick(a, "{}", `{"name": "x"}`, "\xff\x00", strings.Repeat("x", 3000))
		headers = append(headers, fmt.Sprintf("Content-Length: %d", len(body)))
	case method != http.MethodGet && method != http.MethodHead:
		headers = append(headers, "Content-Length: 0")
	}
	return ask{
		text:  method + " " + target + " HTTP/1.1\r\n" + strings.Join(headers, "\r\n") + "\r\n\r\n" + body,
		right: !wrong,
	}
}

// oneMetric returns the parameters of a report without a metric and a split if others cannot be combined with them.
func oneMetric(query []string) []string {
	hasOther := slices.ContainsFunc(query, func(q string) bool {
		name, _, _ := strings.Cut(q, "=")
		name, _ = url.QueryUnescape(name)
		return slices.Contains([]string{
			"goal", "compareMetric", "interval", "scorecard", "curve", "distribution", "cap", "conversionWindow",
			"filters[zScore]", "dimension",
		}, name)
	})
	has := func(name string) bool {
		return slices.ContainsFunc(query, func(q string) bool { return strings.HasPrefix(q, name+"=") })
	}
	canSplit := !hasOther && has("metric") // the primary metric may be one of an action
	hasSplit := canSplit && has("split")
	return slices.DeleteFunc(query, func(q string) bool {
		name, _, _ := strings.Cut(q, "=")
		isAlone := name == "top" && !hasSplit || name == "split" && !canSplit
		return isAlone || name == "metric" && hasOther
	})
}

// planned returns the parameters of a plan that agree with each other. The store has no recent visitors.
func (a *asker) planned(query []string) []string {
	isOf := func(name string) func(string) bool {
		return func(q string) bool { return strings.HasPrefix(q, name+"=") }
	}
	hasShares := slices.ContainsFunc(query, isOf("share"))
	query = slices.DeleteFunc(query, isOf("share"))
	query = slices.DeleteFunc(query, isOf("visitorsPerDay"))
	switch {
	case slices.ContainsFunc(query, isOf("campaign")):
		query = slices.DeleteFunc(query, func(q string) bool { return !isOf("campaign")(q) })
	case hasShares:
		two, three := []string{"share=80", "share=20"}, []string{"share=1", "share=98", "share=1"}
		query = append(query, worlds.Pick(a, two, three)...)
	}
	return append(query, "visitorsPerDay="+worlds.Pick(a, "1", "900", "1000000000"))
}

// events returns lines of events of website 1 with few ids, so that some repeat. Their hours stay below the maximum of
// points with a z-score.
func (a *asker) events() string {
	var lines strings.Builder
	for range 1 + a.IntN(3) {
		fmt.Fprintf(&lines, `{"eventId":"p%d","time":"2026-05-0%dT12:00:00Z","websiteId":1,"visitor":"p%d","event":"view","campaignId":12,"variationId":%d}`+"\n",
			a.IntN(300), 1+a.IntN(4), a.IntN(50), a.IntN(2))
	}
	return lines.String()
}

// target returns the path with ids of the store.
func (a *asker) target(path documentedPath) string {
	name := ""
	if p := path.item.Parameters.GetByInAndName(openapi3.ParameterInPath, "name"); p != nil {
		name = a.attribute()
	}
	file := "glossary.md"
	if strings.HasPrefix(path.template, "/v1/tables/") {
		file = worlds.Pick(a, "experiments", "results", "looks", "decisions", "worth", "series", "segments") + "." +
			worlds.Pick(a, "parquet", "csv", "json", "ndjson")
	}
	return strings.NewReplacer("{id}", a.idOf(path.template), "{experimentId}", "2", "{name}", name, "{key}",
		a.source+".js", "{file}", file, "{part}", "icon.svg").Replace(path.template)
}

// attribute returns an attribute that every website has.
func (a *asker) attribute() string {
	return worlds.Pick(a, a.contract.doc.Components.Schemas["Attribute"].Value.Enum...).(string)
}

func (a *asker) idOf(template string) string {
	switch {
	case strings.HasPrefix(template, "/v1/campaigns"):
		return worlds.Pick(a, "12", "13")
	case strings.HasPrefix(template, "/v1/widgets"):
		return "7"
	case strings.HasPrefix(template, "/v1/websites"):
		return "1"
	case strings.HasPrefix(template, "/v1/goals"):
		return worlds.Pick(a, "3", "4")
	}
	return worlds.Pick(a, "5", "6")
}

// rightly returns valid values of a parameter.
func (a *asker) rightly(p *openapi3.Parameter) []string {
	name := url.QueryEscape(p.Name)
	if a.chance(30) {
		name = p.Name // brackets as they are
	}
	one := func() string { return name + "=" + url.QueryEscape(a.value(p.Name, p.Schema.Value)) }
	if p.Schema.Value.Type.Is("array") {
		var values []string
		for range 1 + a.IntN(3) {
			values = append(values, name+"="+url.QueryEscape(a.value(p.Name, p.Schema.Value.Items.Value)))
		}
		return values
	}
	return []string{one()}
}

func (a *asker) value(name string, of *openapi3.Schema) string {
	switch {
	case name == "websiteId":
		return "1"
	case slices.Contains([]string{"campaign", "campaignId", "widgetId", "experimentId"}, name):
		return "12"
	case name == "goal":
		return worlds.Pick(a, "3", "4")
	case strings.HasSuffix(name, "[dateFrom]"):
		return worlds.Pick(a, "2026-05-01", "1970-01-01", "2026-04-30T23:59:59.999999Z", "2026-05-01T02:00:00+02:00")
	case name == "since":
		return worlds.Pick(a, "2026-05-01T00:00:00Z", "1970-01-01T00:00:00Z", "2026-05-01T02:00:00+02:00")
	case name == "after":
		return worlds.Pick(a, "campaign/12", "campaign/13", "experiment/7/2")
	case name == "dimension":
		return a.attribute()
	case name == "currency":
		return worlds.Pick(a, "JPY", "usd", "CHF")
	case name == "metric" && of.MinLength > 0:
		return worlds.Pick(a, "converted(#3)", "sum(any.value where items.category = 'a') / count(any)",
			"count(any)", "funnel(#3, #4) within 7d", "max(#4.items.revenue)", "distinct(any.items.product)")
	case name == "visitors":
		return worlds.Pick(a, "device = 'mobile'", "not city in ('L''Aquila', '') or os like 'a*b'")
	case name == "split":
		return worlds.Pick(a, "items.product", "items.category")
	case name == "text":
		return worlds.Pick(a, "", "sum(", "count(any where value > 1) for device = 'mo", "日本")
	case of.MinLength > 0:
		return worlds.Pick(a, "Ann", "日本", "a b+c&d=e")
	case of.Format == "date":
		return worlds.Pick(a, "2026-05-01", "1970-01-01", "2199-12-30")
	case strings.HasSuffix(name, "[dateTo]"):
		return worlds.Pick(a, "2026-05-02", "2199-12-30", "2026-05-01T12:00:00-11:30")
	case len(of.Enum) > 0:
		return fmt.Sprint(worlds.Pick(a, of.Enum...))
	case of.Type.Is("integer"):
		least, most := int64(*of.Min), int64(*of.Max)
		return fmt.Sprint(worlds.Pick(a, least, most, least+a.Int64N(most-least)))
	case of.Type.Is("number") && of.Min != nil:
		return fmt.Sprint(worlds.Pick(a, *of.Min, *of.Max, *of.Min+.5))
	case of.Type.Is("number"):
		return worlds.Pick(a, "1", "0.5", "3e2", "999999999999999999999999", "2.25")
	case name == "cap":
		return worlds.Pick(a, "p50", "p99.9", "p95", "0.0001", "500", "12.5", "999999999.9999")
	case name == "conversionWindow":
		return worlds.Pick(a, "none", "1h", "7d", "72h", "90d", "7d..14d", "0d..2160h")
	case of.Pattern != "":
		return worlds.Pick(a, "US", "de", "")
	}
	return worlds.Pick(a, "", "mobile", "L'Aquila", "*", "a*b", "%", "\\", "日本", "' OR 1=1 --", "{x:String}",
		strings.Repeat("y", 512), "a b+c&d=e", "\u2028")
}

var wrongValues = []string{
	"", "x", "-1", "0", "1.5", "1e999", "NaN", "Infinity", "0x10", "99999999999999999999", strings.Repeat("9", 400),
	"null", "[]", "%00", "%ff%fe", "%zz", "%", "+",
	"2026-02-30", "2026-05-01T00:00:00", "10000-01-01", "true", "TRUE", "%F0%9F%98%80", "a;b", strings.Repeat("z", 600),
	"..%2f..%2fetc", "<script>", "%0d%0aX: y",
}

// mutated makes one part of a request invalid.
func (a *asker) mutated(operation *openapi3.Operation, method, target string,
	query, headers []string,
) (_, _ string, _, _ []string) {
	set := func(name, value string) {
		headers = append(slices.DeleteFunc(headers, func(h string) bool { return strings.HasPrefix(h, name+":") }),
			name+": "+value)
	}
	switch a.IntN(14) {
	case 0:
		query = append(query,
			worlds.Pick(a, "colour", "websiteid", "Limit", "filters", "filters[]", "filters[device",
				"filters%5Bcolour%5D", "filters[device][x]", "filters[device][]x", "", "=", "%00", "%zz", "a;b")+"="+
				worlds.Pick(a, wrongValues...))
	case 1, 2:
		var names []string
		for _, parameter := range operation.Parameters {
			if parameter.Value.In == openapi3.ParameterInQuery {
				names = append(names, parameter.Value.Name)
			}
		}
		if len(names) > 0 {
			query = append(query,
				worlds.Pick(a, names...)+worlds.Pick(a, "=", "=", "=", "[]=", "[0]=", "")+worlds.Pick(a,
					wrongValues...))
		}
	case 3:
		query = append(query, query...)
	case 4:
		for i := range worlds.Pick(a, 200, 10_000) {
			query = append(query, fmt.Sprint("p", i, "=1"))
		}
		query = query[:min(len(query), 4000)] // what net/http takes as a whole
	case 5:
		before, id, _ := strings.Cut(target, "/v1/")
		parts := strings.Split(id, "/")
		parts[a.IntN(len(parts))] = worlds.Pick(a,
			append([]string{"98", "99", "%2e%2e", "%2F", "12%2Fresults", "a%00b", "%E6%97%A5", "..", ".", "*", "{id}"},
				wrongValues...)...)
		target = before + "/v1/" + strings.ReplaceAll(strings.Join(parts, "/"), " ", "%20")
	case 6:
		method = worlds.Pick(a, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodTrace, http.MethodPost,
			http.MethodGet, http.MethodHead, "get", "FOO")
	case 7, 13:
		set("Authorization",
			worlds.Pick(a, "", "Bearer", "Bearer ", "Basic eDp5", "Bearer lh_x", "Bearer "+strings.Repeat("a", 5000),
				"bearer "+a.tokens[0], "Bearer  "+a.tokens[0], "Bearer "+a.tokens[1], "Bearer "+a.tokens[2]))
	case 8:
		set("Accept",
			worlds.Pick(a, "application/json", "*/*", "text/html", "text/csv", "text/*", "image/svg+xml", "image/*",
				"image/png", "application/sql", "text/csv;q=0.5, */*;q=0.1", "application/*", ";;;", "\xff",
				"application/json;q=0"))
	case 9:
		set(worlds.Pick(a, "X-Request-Id", "If-None-Match", "Cache-Control", "Origin", "Range", "Content-Type",
			"Accept-Encoding", "If-Match", "If-Modified-Since", "Cookie", "X-Forwarded-For",
			"Access-Control-Request-Method"),
			worlds.Pick(a, "", "*", "a b", "no-cache", "https://evil.example", "https://shop.example.com", "bytes=0-1", "gzip", strings.Repeat("h", 3000), "\xfe", `W/"x"`, "null"))
	case 10:
		target = worlds.Pick(a, "/", "//v1/campaigns", "/v1", "/v1/", "/v2/campaigns", target+"/",
			"/v1/campaigns//results", "/v1/../v1/websites", "/%2e%2e/etc/passwd", "/v1/campaigns/12/results/x",
			"/V1/campaigns", target+"%20")
	case 11:
		method = http.MethodOptions
		if a.chance(70) { // as a browser asks before the request of a page
			headers = slices.DeleteFunc(headers, func(h string) bool { return strings.HasPrefix(h, "Authorization:") })
			set("Origin", worlds.Pick(a, "https://shop.example.com", "https://evil.example", "null", "*", "\xff", ""))
			set("Access-Control-Request-Method", worlds.Pick(a, http.MethodGet, http.MethodPost, http.MethodDelete, "get", "", "\xff"))
			set("Access-Control-Request-Headers",
				worlds.Pick(a, "authorization", "x-request-id, if-none-match", "*", strings.Repeat("x,", 1000), "\xff"))
		}
	case 12:
		target = strings.Repeat("/"+strings.Repeat("d", 50), 1+a.IntN(15)) + target
	}
	return method, target, query, headers
}

// wire sends requests over one connection at a time.
type wire struct {
	address string
	conn    net.Conn
	in      *bufio.Reader
}

func (w *wire) send(request *http.Request, text string) (reply, error) {
	if w.conn == nil {
		conn, err := net.DialTimeout("tcp", w.address, 10*time.Second) //nolint:noctx // bounded, and of a test
		if err != nil {
			return reply{}, err
		}
		w.conn, w.in = conn, bufio.NewReader(conn)
	}
	if err := w.conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return reply{}, err
	}
	_, wrote := io.WriteString(w.conn, text) // a refusal may come before all is read
	response, err := http.ReadResponse(w.in, request)
	if err != nil {
		return reply{}, fmt.Errorf("no answer: %w (written: %w)", err, wrote)
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if response.Header.Get("Content-Encoding") == "gzip" && len(body) > 0 &&
		err == nil { // a header that was asked for with luck
		body, err = unzipped(body)
	}
	if response.Close || wrote != nil {
		w.hangUp()
	}
	return reply{Status: response.StatusCode, Header: response.Header, Text: string(body)}, err
}

func (w *wire) hangUp() {
	if w.conn != nil {
		_ = w.conn.Close()
		w.conn = nil
	}
}

func unzipped(body []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

func TestNoRequestIsAnsweredOutsideTheDocument(t *testing.T) {
	requests := tier.Of(300, 8_000)
	s, ingests := newTwoSites(t, func(o *api.Options) { o.Origins = []string{"https://shop.example.com"} })
	events := []schema.Event{
		at(0, "a", 0, schema.KindView, 0), at(1, "b", 1, schema.KindView, 0),
		at(2, "b", 1, schema.KindGoal, 50_000), shown(0, "c", 2, 1, schema.KindView),
		shown(0, "d", 0, 1, schema.KindView),
	}
	must.OK(t, s.writer.WriteEvents(t.Context(), events))
	s.apply(strings.Replace(twoSites, "name: Banner,", "name: Banner, mde: 7, methodology: bayesian,",
		1)) // warns of a changed plan
	c := must.Get(theContract())(t)
	tokens := []string{s.newToken(1, 0, catalogue.ScopeAdmin), s.newToken(1, 0, catalogue.ScopeRead), ingests}
	key := s.sourceKey("tag", catalogue.Sender{})
	w := &wire{address: s.Listener.Addr().String()}
	answers, warned := map[int]int{}, map[string]bool{"SILENT": false, "PLAN_CHANGED": false}
	worlds.Check(t, requests, func(t *rapid.T, r worlds.Rand) {
		asked := (&asker{r, c, tokens, key}).request()
		request, err := http.ReadRequest(bufio.NewReader(strings.NewReader(asked.text)))
		unreadable := err != nil
		if unreadable {
			request = &http.Request{Method: http.MethodGet}
		}
		response, err := w.send(request, asked.text)
		if errors.Is(err, syscall.ECONNRESET) &&
			unreadable { // net/http refuses what is no HTTP and hangs up, perhaps before we have read why
			w.hangUp()
			return
		}
		must.OK(t, err, "the response to %.600s", asked.text)
		answers[response.Status]++
		for warning := range warned {
			warned[warning] = warned[warning] || strings.Contains(response.Text, `"`+warning+`"`)
		}
		isPlain := strings.HasPrefix(response.Header.Get("Content-Type"), "text/plain")
		switch {
		case unreadable && isPlain && response.Status == http.StatusBadRequest:
			return // the document says that net/http answers this
		case unreadable:
			err = fmt.Errorf("want a plain 400: it is no HTTP")
		case response.Status >= http.StatusInternalServerError:
			err = fmt.Errorf("no request may cause a 500")
		case asked.right && response.Status != http.StatusOK:
			err = fmt.Errorf("it is as the document allows: want 200")
		default:
			err = c.check(request.WithContext(t.Context()), response)
		}
		must.OK(t, err, "%d %.400s to %.600s", response.Status, strings.TrimSpace(response.Text), asked.text)
	})
	for _, status := range []int{200, 204, 400, 401, 404, 405} {
		check.That(t, answers[status] >= 1+requests/250, "%d answers of %d: the requests are not as manifold as they should be; %v", answers[status], status, answers)
	}
	for warning, seen := range warned {
		check.That(t, seen, "no response has the warning %s", warning)
	}
	t.Logf("answers by status: %v", answers)
}

// TestEachParameterWithEachWrongValue sends every wrong value for every parameter that is not a plain text, outside the
// long tier a third of them.
func TestEachParameterWithEachWrongValue(t *testing.T) {
	s, _ := newTwoSites(t)
	c := must.Get(theContract())(t)
	a := &asker{Rand: rand.New(rand.NewPCG(5, 1)), contract: c}
	w := &wire{address: s.Listener.Addr().String()}
	sent := 0 // parameters
	for _, path := range c.paths {
		if path.item.Get == nil {
			continue
		}
		target := a.target(path)
		for _, parameter := range path.item.Get.Parameters {
			p := parameter.Value
			if of := p.Schema.Value; p.In != openapi3.ParameterInQuery || of.Type.Is("string") && of.Format == "" &&
				of.Pattern == "" && len(of.Enum) == 0 {
				continue
			}
			sent++
			for i, value := range wrongValues {
				if !tier.IsLong() && (i+sent)%8 != 0 {
					continue
				}
				text := "GET " + target + "?websiteId=1&" + p.Name + "=" + value +
					" HTTP/1.1\r\nHost: lifthouse\r\nAuthorization: Bearer " + s.token + "\r\n\r\n"
				request, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
				if err != nil {
					continue // no HTTP
				}
				response, err := w.send(request, text)
				must.OK(t, err)
				err = c.check(request.WithContext(t.Context()), response)
				check.That(t, err == nil, "%s=%s of %s: %v\n%.600v", p.Name, value, target, response, err)
				isFailure := response.Status >= http.StatusInternalServerError
				check.That(t, !isFailure, "%s=%s of %s: %v", p.Name, value, target, response)
			}
		}
	}
}
