package api_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// sourceKey returns the key of a new source of website 1.
func (s *server) sourceKey(name string, sender catalogue.Sender) string {
	s.t.Helper()
	if sender.Mapping == "" {
		sender.Mapping = name
	}
	secret, _, err := s.catalogue.CreateToken(s.t.Context(), catalogue.Token{
		AccountID: 1, WebsiteID: 1, Name: name, Scopes: []catalogue.Scope{catalogue.ScopeIngest}, Sender: &sender,
	})
	must.OK(s.t, err)
	return secret
}

func (s *server) storedEvents() (events uint64) {
	s.t.Helper()
	must.OK(s.t, s.conn.QueryRow(s.t.Context(), "SELECT count() FROM events FINAL").Scan(&events))
	return events
}

// TestSignedSources sends webhooks with the signatures of Shopify and WooCommerce.
func TestSignedSources(t *testing.T) {
	s := newServer(t)
	const hush = "hush, hush, hush, hush"
	file := must.WriteFile(t, "secret", hush+"\n")
	order := `{"id":1,"created_at":"2026-05-01T12:00:00Z","total_price":"10.00","note_attributes":[{"name":"lifthouse","value":"v"}]}`
	sign := func(secret, body string) string {
		mac := hmac.New(sha256.New, []byte(secret))
		_, _ = mac.Write([]byte(body))
		return base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	byFile, bySecret := s.sourceKey("shopify", catalogue.Sender{SecretFile: file}), s.sourceKey("woocommerce",
		catalogue.Sender{Mapping: "shopify", Secret: new(hush)})
	for header, want := range map[[2]string]int{
		{"X-Shopify-Hmac-Sha256", sign(hush, order)}:        http.StatusOK,
		{"X-WC-Webhook-Signature", sign(hush, order)}:       http.StatusOK,
		{"X-Shopify-Hmac-Sha256", sign(hush, order+" ")}:    http.StatusUnauthorized,
		{"X-Shopify-Hmac-Sha256", sign("another", order)}:   http.StatusUnauthorized,
		{"X-Shopify-Hmac-Sha256", "not base64"}:             http.StatusUnauthorized,
		{"X-Shopify-Hmac-Sha256", ""}:                       http.StatusUnauthorized,
		{"X-Unknown-Signature", sign(hush, order)}:          http.StatusUnauthorized,
		{"X-Shopify-Hmac-Sha256", sign("", order)}:          http.StatusUnauthorized,
		{"X-WC-Webhook-Signature", sign(hush, "otherwise")}: http.StatusUnauthorized,
	} {
		for _, key := range []string{byFile, bySecret} {
			request := s.PostItems(key, order).Header(header[0], header[1]).Header("X-Shopify-Topic", "orders/create")
			response := request.Send()
			check.Equal(t, response.Status, want, "%s: %v", header[0], response)
		}
	}
	check.Equal(t, s.storedEvents(), 1, "orders")
	must.OK(t, os.WriteFile(file, nil, 0o600))
	response := s.PostItems(byFile, order).Header("X-Shopify-Hmac-Sha256", sign("", order)).Send()
	check.Equal(t, response.Status, http.StatusServiceUnavailable, "signed with an empty file: %v", response)
	must.OK(t, os.Remove(file))
	response = s.PostItems(byFile, order).Send()
	check.Equal(t, response.Status, http.StatusServiceUnavailable, "without the file of the secret: %v", response)
}

// shopWithWebhook has a webhook whose key is in a file.
const shopWithWebhook = `
accounts:
- id: 1
  name: Shop
  websites: [{id: 1, domain: shop.example.com}]
  webhooks: [{id: 7, url: "https://a.example/", secretFile: /etc/lifthouse/key}]
`

// TestRequestsNameNoFiles creates sources and webhooks over HTTP. A path is refused; a secret is stored and not shown.
func TestRequestsNameNoFiles(t *testing.T) {
	s := newEmptyServer(t)
	s.apply(shopWithWebhook)
	admin := s.newToken(1, 0, catalogue.ScopeAdmin)
	source := func(fields string) reply {
		body := "{name: A, scopes: [ingest], websiteId: 1, sender: {mapping: shopify, " + fields + "}}"
		return s.Post("/tokens", body).Token(admin).Type("application/yaml").Send()
	}
	const onlyCommand = `"value":"/dev/zero","detail":"must be omitted: only lifthouse source add`
	for fields, want := range map[string]string{
		"secretFile: /dev/zero":   `"name":"sender.secretFile",` + onlyCommand,
		`secret: ""`:              `"name":"sender.secret","value":"","detail":"must have 16 to 4096 bytes`,
		"secret: fifteen bytes..": `"name":"sender.secret","value":"","detail":"must have 16 to 4096 bytes`,
	} {
		response := source(fields)
		check.Equal(t, response.Status, http.StatusBadRequest, fields)
		check.Contains(t, response.Text, want)
	}
	const hush = "hush, hush, hush, hush"
	source(`secret: "` + hush + `"`).CheckStatus(http.StatusCreated)
	listed := s.Get("/tokens").Token(admin).Send().Text
	check.Contains(t, listed, `"sender":{"mapping":"shopify","signed":true}`)

	putCatalogue := func(query, tag, text string) reply {
		request := s.Request(http.MethodPut, "/catalogue"+query, text).Token(admin).Type("application/yaml")
		return request.Header("If-Match", tag).Send()
	}
	hook := func(id int, fields string) reply {
		body := fmt.Sprintf(`accounts: [{id: 1, name: Shop, webhooks: [{id: %d, url: "https://a.example/"%s}]}]`, id, fields)
		return putCatalogue("", "*", body)
	}
	for _, test := range []struct {
		id           int
		fields, want string
	}{
		{1, ", secretFile: /dev/zero", `.secretFile","value":"/dev/zero","detail":"line 1: must be omitted: only lifthouse apply`},
		{7, ", secretFile: /etc/passwd", `.secretFile","value":"/etc/passwd","detail":"line 1: must be omitted`},
		{1, ", secret: whsec_AAAA", `.secret","value":"","detail":"line 1: must have whsec_ and the base64 encoding of at`},
		{1, "", `.secret","value":"","detail":"line 1: is required`},
	} {
		response := hook(test.id, test.fields)
		check.Equal(t, response.Status, http.StatusBadRequest, test.fields)
		check.Contains(t, response.Text, test.want)
	}
	key := "whsec_" + strings.Repeat("A", 32)
	hook(1, ", secret: "+key).CheckStatus(http.StatusOK)
	file := s.Get("/catalogue").Token(admin).Send().RequireStatus(http.StatusOK)
	pruned := putCatalogue("?prune=true", file.Header.Get("ETag"), file.Text).CheckStatus(http.StatusOK)
	check.Contains(t, pruned.Text, `"changes":[]`)
	check.Equal(t, s.catalogue.Snapshot().AccountResources(1).Webhooks[1].Secret, key, "secret after its own catalogue")
	changed := hook(1, ", secret: "+strings.Replace(key, "A", "B", 1)).CheckStatus(http.StatusOK)
	check.Contains(t, changed.Text, `{"field":"secret","before":"…","after":"…"}`)

	log := must.Get(s.catalogue.ReadAuditLog(t.Context(), 0, time.Unix(0, 0), 1000))(t)
	audit := string(must.Get(json.Marshal(log))(t))
	for name, text := range map[string]string{
		"tokens": listed, "catalogue": file.Text, "changes": changed.Text, "audit": audit,
	} {
		for _, secret := range []string{hush, "whsec_A", "whsec_B"} {
			check.That(t, !strings.Contains(text, secret), "the %s has %s: %s", name, secret, text)
		}
	}
}

// TestWebhooksOfAnOrderInAnyOrder sends the webhooks of an order of Shopify in each order, and each one twice: the state
// of the order is that of the books, also if the pixel reported the purchase first or last.
func TestWebhooksOfAnOrderInAnyOrder(t *testing.T) {
	s := newServer(t)
	shopify, tag := s.sourceKey("shopify", catalogue.Sender{}), s.sourceKey("tag", catalogue.Sender{})
	const order = `{"id":%[1]d,"checkout_token":"order-%[1]d","created_at":"2026-05-01T08:00:00-04:00","updated_at":"%[2]s","cancelled_at":%[3]s,"total_price":"100.00",` +
		`"current_total_price":"%[4]s","note_attributes":[{"name":"lifthouse","value":"buyer-%[1]d"}]}`
	webhooks := []func(id int) (topic, body string){
		func(id int) (string, string) {
			return "orders/create", fmt.Sprintf(order, id, "2026-05-01T08:00:00-04:00", "null", "100.00")
		},
		func(id int) (string, string) {
			return "orders/updated", fmt.Sprintf(order, id, "2026-05-02T08:00:00-04:00", "null", "60.00")
		},
		func(id int) (string, string) {
			if id%2 == 0 { // the books have half of the orders as cancelled, and the others as returned in part
				return "orders/cancelled", fmt.Sprintf(order, id, "2026-05-03T08:00:00-04:00", `"2026-05-03T08:00:00-04:00"`, "0.00")
			}
			return "orders/updated", fmt.Sprintf(order, id, "2026-05-03T08:00:00-04:00", "null", "45.50")
		},
	}
	permutations := [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}
	var buyers sync.WaitGroup // a source collects the requests of some time
	for id := range 4 * len(permutations) {
		s.write(schema.Event{
			EventID: uint64(id), Time: time.Date(2026, 5, 1, 11, 0, 0, 0, time.UTC), WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 1, //nolint:gosec // small
			VisitorID: schema.HashID(fmt.Sprintf("buyer-%d", id)), Kind: schema.KindView,
		})
		pixel := func() { // an older one sends the token of the checkout, and another one the order's number
			number := []string{"order-", ""}[id/12] + strconv.Itoa(id)
			body := fmt.Sprintf(`{"visitor":"buyer-%[1]d","batch":[{"id":"p%[1]d","age":0,"event":"purchase","order":%[2]q,"value":99}]}`, id, number)
			s.PostItems(tag, body).Send().CheckStatus(http.StatusOK)
		}
		buyers.Go(func() {
			if id%4 == 0 {
				pixel()
			}
			for _, n := range permutations[id/4] {
				topic, body := webhooks[n](id)
				for range 2 {
					s.PostItems(shopify, body).Header("X-Shopify-Topic", topic).Send().CheckStatus(http.StatusOK)
				}
			}
			if id%4 == 1 {
				pixel()
			}
		})
	}
	buyers.Wait()
	s.fold()
	var returned, orders int64
	var earliest, latest time.Time
	must.OK(t, s.conn.QueryRow(t.Context(), `SELECT sumIf(sign, value = 455000), sum(sign) FROM facts WHERE grain = 'goal' AND variation = '0'`).Scan(&returned, &orders))
	check.Equal(t, returned, 12, "orders returned in part")
	check.Equal(t, orders, 12, "orders")
	must.OK(t, s.conn.QueryRow(t.Context(), `SELECT min(first_time + INTERVAL since_ms MILLISECOND), max(first_time + INTERVAL since_ms MILLISECOND) FROM facts FINAL
		WHERE grain = 'goal' AND variation = '0'`).Scan(&earliest, &latest))
	check.Equal(t, earliest, time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), "time of the first order")
	check.Equal(t, latest, earliest, "time of the last order")
}

// TestOrderOfItemsDoesNotMatter sends the same items in random orders and in requests of random sizes, and declares the
// campaign before, between or after them. The facts are the same, and so are the reports but for what they say of the
// declaration.
func TestOrderOfItemsDoesNotMatter(t *testing.T) {
	const declaration = `
accounts:
- id: 1
  name: Shop
  websites:
  - id: 1
    domain: shop.example.com
    goals: [{key: purchase, name: Purchase}]
    campaigns:
    - {key: layout, name: Layout, primaryGoalId: purchase, controlShare: 50, startDate: 2026-05-01,
       variations: [{key: b, name: B, share: 100}]}
`
	var items []string
	for i := range 120 {
		arm := []string{"control", "b"}[i%2]
		view := fmt.Sprintf(`{"anonymousId":"a%d","messageId":"v%[1]d","event":"Experiment Viewed","timestamp":"2026-05-0%dT12:00:00Z","properties":{"experiment_id":"layout","variation_id":%q}}`, i, 1+i%7, arm)
		order := fmt.Sprintf(`{"anonymousId":"a%d","messageId":"m%[1]d","event":"Order Completed","timestamp":"2026-05-0%dT13:00:00Z","properties":{"order_id":"o%[1]d","revenue":%d}}`, i, 1+i%7, i)
		if items = append(items, view); i%3 == 0 {
			items = append(items, order, order)
		}
		if i%11 == 0 { // another variation: the visitor is multi-exposed
			items = append(items, strings.NewReplacer(`"v`, `"w`, arm,
				map[string]string{"control": "b", "b": "control"}[arm]).Replace(view))
		}
	}
	var facts, report string
	for round := range tier.Of(3, 8) {
		random := rand.New(rand.NewPCG(7, uint64(round)))
		random.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
		s := newEmptyServer(t)
		s.apply("accounts: [{id: 1, name: Shop, websites: [{id: 1, domain: shop.example.com}]}]")
		key := s.sourceKey("segment", catalogue.Sender{})
		declare := []int{0, len(items) / 2, len(items)}[round%3]
		for from := 0; from <= len(items); {
			if from >= declare && declare >= 0 {
				s.apply(declaration)
				declare = -1
			}
			until := min(len(items), from+1+random.IntN(40))
			if from < until {
				s.PostItems(key, `{"batch":[`+strings.Join(items[from:until], ",")+"]}").Send().CheckStatus(http.StatusOK)
			}
			if from = until; from == len(items) && declare < 0 {
				break
			}
		}
		must.Get(s.facts.AwaitNoted(t.Context()))(t)
		var digest string
		must.OK(t,
			s.conn.QueryRow(t.Context(),
				"SELECT toString(groupBitXor(digest)) || ' ' || toString(sum(sign)) FROM facts WHERE digest != 0").Scan(&digest))
		token := s.newToken(1, 0, catalogue.ScopeRead)
		id, _, _ := schema.IDOf(1, schema.NameCampaign, "layout")
		var body map[string]any
		s.Get(fmt.Sprintf("/v1/campaigns/%d/results", id)).Token(token).Send().JSON(&body)
		shown := fmt.Sprint(body["totals"], body["variations"])
		if round == 0 {
			facts, report = digest, shown
		}
		check.Equal(t, digest, facts, "facts of round %d", round)
		check.Equal(t, shown, report, "report of round %d", round)
	}
	check.That(t, strings.Contains(report, "convertedVisitors:40") || strings.Contains(report, "convertedVisitors:3"),
		"%.300s", report)
}

// TestInventedNamesDoNotBlockNewOnes invents experiments with the key of a page. What the catalogue declares is
// accepted, and so are new experiments: the rarest of the others are forgotten with their events.
func TestInventedNamesDoNotBlockNewOnes(t *testing.T) {
	tier.OnlyLong(t)
	dropped := make(chan struct{}, 100)
	conn := schematest.HookedConn{Conn: schematest.OpenMigrated(t), Before: func(_ context.Context, q string) error {
		if strings.Contains(q, "ALTER TABLE names") {
			dropped <- struct{}{}
		}
		return nil
	}}
	s := newServerOn(t, conn)
	s.apply(`
accounts:
- id: 1
  name: Shop
  websites: [{id: 1, domain: a.example, goals: [{key: purchase, name: Purchase}],
    campaigns: [{key: declared, name: Declared}]}]
`)
	view := func(visitor, campaign, variation string) string {
		return fmt.Sprintf(`{"anonymousId":%q,"messageId":"%[1]s %[2]s %[3]s","event":"Experiment Viewed",`+
			`"properties":{"experiment_id":%[2]q,"variation_id":%[3]q}}`, visitor, campaign, variation)
	}
	key := s.sourceKey("segment", catalogue.Sender{Rate: new(0)})
	send := func(items []string) string {
		response := s.PostItems(key, `{"batch":[`+strings.Join(items, ",")+"]}").Send().CheckStatus(http.StatusOK)
		return strings.TrimSpace(response.Text)
	}
	names := must.Get(s.writer.Names(t.Context()))(t)
	var followed sync.WaitGroup
	following, stop := context.WithCancel(t.Context())
	defer followed.Wait()
	defer stop()
	followed.Go(func() { s.writer.ForgetNames(following, false) })

	real := []string{view("r1", "real", "a"), view("r2", "real", "b"), view("d", "declared", "0")}
	check.Equal(t, send(real), `{"accepted":3,"ignored":0,"rejected":0}`, "real experiments")
	s.fold()
	for batch := range 11 {
		var items []string
		for i := range 1000 {
			items = append(items, view(fmt.Sprint("v", i), fmt.Sprintf("invented %d %d", batch, i), "x"))
		}
		check.Equal(t, send(items), `{"accepted":1000,"ignored":0,"rejected":0}`, "batch %d", batch)
		s.fold()
	}
	<-dropped
	var variations []string
	for i := range 300 {
		variations = append(variations, view("w", "declared", fmt.Sprint("invented ", i)))
	}
	check.Equal(t, send(variations), `{"accepted":300,"ignored":0,"rejected":0}`, "variations")
	item := `{"anonymousId":"d","messageId":"p","event":"Order Completed","properties":{"order_id":"o","revenue":5}}`
	check.Equal(t, send([]string{view("e", "declared", "0"), item}), `{"accepted":2,"ignored":0,"rejected":0}`, "declared")
	of := names.CountNames()[1]
	check.That(t, of.Undeclared <= ingest.MaxWebsiteNames, "%d undeclared names", of.Undeclared)
	check.That(t, of.Forgotten >= 1000, "%d forgotten names", of.Forgotten)
	<-dropped // of the variations
	stop()
	followed.Wait()

	s.fold()
	stored := must.Get(schema.ReadNames(t.Context(), conn))(t)
	check.That(t, len(stored) < 2*ingest.MaxWebsiteNames, "%d stored names", len(stored))
	real1, _, _ := schema.IDOf(1, schema.NameCampaign, "real")
	check.Equal(t, stored[schema.NamedID{WebsiteID: 1, Kind: schema.NameCampaign, ID: real1}].Key, "real",
		"frequent name")
	scrubbed := must.Get(s.facts[0].VerifyFacts(t.Context(), func(float64) {}))(t)
	check.Equal(t, scrubbed.Wrong, 0, "visitors with wrong facts")
	check.Equal(t, len(scrubbed.Lost), 0, "visitors who lost events")
	reader := s.newToken(1, 0, catalogue.ScopeRead)
	listed := s.Get("/v1/sources").Token(reader).Send().CheckStatus(http.StatusOK).Text
	check.Contains(t, listed, "were forgotten with their events, the rarest first")

	// Drop what is not declared, also names whose events were not deleted yet.
	var undeclared []schema.NamedID
	for _, name := range names.UndeclaredNames(func(schema.Name) bool { return true }) {
		undeclared = append(undeclared, name.NamedID)
	}
	must.OK(t, s.writer.DropNames(t.Context(), undeclared))
	declared, _, _ := schema.IDOf(1, schema.NameCampaign, "declared")
	for subject := range s.facts.StoredSubjects() {
		isOther := subject.Kind == schema.SubjectCampaign && subject.ID != declared
		check.That(t, !isOther, "%v is not dropped", subject)
	}
}

// TestRefusedRequestsNoteNoNames sends more than the rate of a source. What is refused leaves no names.
func TestRefusedRequestsNoteNoNames(t *testing.T) {
	s := newServer(t)
	key := s.sourceKey("segment", catalogue.Sender{Rate: new(1)})
	names := must.Get(s.writer.Names(t.Context()))(t)
	for request := range 3 {
		var items []string
		for i := range 5000 {
			items = append(items, fmt.Sprintf(`{"anonymousId":"v","event":"Experiment Viewed","properties":`+
				`{"experiment_id":"invented %d %d","variation_id":"x"}}`, request, i%100))
		}
		response := s.PostItems(key, `{"batch":[`+strings.Join(items, ",")+"]}").Send()
		want := http.StatusTooManyRequests
		if request == 0 {
			want = http.StatusOK
		}
		check.Equal(t, response.Status, want, response.Text)
	}
	check.Equal(t, names.CountNames()[1].Undeclared, 100, "names")
}

// TestUndeclaredIsSelected lists some of the campaigns that arrived, and the sources of a website.
func TestUndeclaredIsSelected(t *testing.T) {
	s := newEmptyServer(t)
	s.apply("accounts: [{id: 1, name: Shop, websites: [{id: 1, domain: a.example}, {id: 2, domain: b.example}]}]")
	key := s.sourceKey("segment", catalogue.Sender{})
	for _, name := range []string{"Checkout A", "checkout b", "banner"} {
		s.PostItems(key, fmt.Sprintf(`{"anonymousId":"v","event":"Experiment Viewed","properties":`+
			`{"experiment_id":%q,"variation_id":"x"}}`, name)).Send().CheckStatus(http.StatusOK)
	}
	s.fold()
	token := s.newToken(1, 0, catalogue.ScopeRead)
	for query, want := range map[string]string{
		"":                     "3 of 3",
		"?websiteId=1&limit=1": "1 of 3",
		"?websiteId=2":         "0 of 0",
		"?search=CHECKOUT":     "2 of 2",
		"?limit=0":             `"limit"`,
		"?websiteId=3":         "not_found",
		"?search=%ff":          "must be UTF-8",
	} {
		response := s.Get("/v1/undeclared" + query).Token(token).Send()
		got := response.Text
		if response.Status == http.StatusOK {
			var listed []any
			response.JSON(&listed)
			got = fmt.Sprintf("%d of %s", len(listed), response.Header.Get("X-Total-Count"))
		}
		check.Contains(t, got, want, query)
	}
	for query, want := range map[string]string{"": `"name":"segment"`, "?websiteId=1": `"name":"segment"`, "?websiteId=2": `"sources":[]`} {
		check.Contains(t, s.Get("/v1/sources"+query).Token(token).Send().CheckStatus(http.StatusOK).Text, want, query)
	}
}

// TestLongLabelsAreCut sends a view with a referrer that is too long. It is cut between characters, and counted.
func TestLongLabelsAreCut(t *testing.T) {
	s := newServer(t)
	key := s.sourceKey("segment", catalogue.Sender{})
	referrer := "https://a.example/x" + strings.Repeat("ü", 300)
	response := s.PostItems(key, `{"batch":[{"anonymousId":"v","event":"Experiment Viewed","context":{"page":{"referrer":"`+referrer+
		`"}},"properties":{"experiment_id":"12","variation_id":"1"}}]}`).Send()
	check.Equal(t, response.Status, http.StatusOK)
	check.Equal(t, response.Text, `{"accepted":1,"ignored":0,"rejected":0}`+"\n")
	var stored string
	must.OK(t, s.conn.QueryRow(t.Context(), "SELECT referrer FROM events").Scan(&stored))
	check.Equal(t, stored, referrer[:511], "stored referrer")
	listed := s.Get("/v1/sources").Send().CheckStatus(http.StatusOK).Text
	check.Contains(t, listed, `"cut":1`)
}

// TestMisspeltMappings creates sources whose mapping is misspelt or empty.
func TestMisspeltMappings(t *testing.T) {
	s := newServer(t)
	admin := s.newToken(1, 0, catalogue.ScopeAdmin)
	for mapping, want := range map[string]string{
		"segmnt": `"name":"sender.mapping","value":"segmnt","detail":"must be one of `,
		"shopfy": `or a mapping as YAML; did you mean shopify?`,
		"":       `"name":"sender.mapping","value":"","detail":"must be one of `,
	} {
		body := fmt.Sprintf(`{"name":"A","scopes":["ingest"],"websiteId":1,"sender":{"mapping":%q}}`, mapping)
		response := s.Post("/tokens", body).Token(admin).Type("application/json").Send()
		check.Equal(t, response.Status, http.StatusBadRequest, mapping)
		check.Contains(t, response.Text, want)
	}
}

// TestTheRateOfASourceBoundsItsBursts sends single items, and many in one request.
func TestTheRateOfASourceBoundsItsBursts(t *testing.T) {
	s := newServer(t)
	one := s.sourceKey("segment", catalogue.Sender{Rate: new(10)})
	many := s.sourceKey("rudderstack", catalogue.Sender{Rate: new(10)})
	const item = `{"type":"identify"}`
	admitted := 0
	started := time.Now()
	for range 100 {
		if s.PostItems(one, item).Send().Status == http.StatusOK {
			admitted++
		}
	}
	most := 10 + int(10*time.Since(started).Seconds()) + 1
	check.That(t, admitted >= 10, "%d items at once", admitted)
	check.That(t, admitted <= most, "%d items at once, of at most %d", admitted, most)
	s.PostItems(many, `{"batch":[`+item+strings.Repeat(","+item, 4999)+"]}").Send().CheckStatus(http.StatusOK)
	response := s.PostItems(many, item).Send().CheckStatus(http.StatusTooManyRequests)
	wait := must.Get(strconv.Atoi(response.Header.Get("Retry-After")))(t)
	check.That(t, wait > 480, "wait of %d s after 5,000 items", wait)
	check.That(t, wait <= 500, "wait of %d s after 5,000 items", wait)
}

// TestNamesOfIgnoredItemsAreShort sends items whose names are long, which are kept until the server stops.
func TestNamesOfIgnoredItemsAreShort(t *testing.T) {
	s := newServer(t)
	key := s.sourceKey("segment", catalogue.Sender{})
	var items []string
	for i := range 300 {
		items = append(items, fmt.Sprintf(`{"anonymousId":"v","event":"%d%s"}`, i, strings.Repeat("x", 10_000)))
	}
	s.PostItems(key, `{"batch":[`+strings.Join(items, ",")+"]}").Send().CheckStatus(http.StatusOK)
	listed := s.Get("/v1/sources").Send().CheckStatus(http.StatusOK).Text
	check.That(t, len(listed) < 40_000, "the list of sources has %d bytes", len(listed))
	check.Contains(t, listed, `"others":100`)
}

// TestAnItemHasFewEvents sends items whose list has many events, which the rate of the source counts once.
func TestAnItemHasFewEvents(t *testing.T) {
	s := newServer(t)
	key := s.sourceKey("lists", catalogue.Sender{Mapping: `
fields: {visitor: v, time: {value: "2026-05-01T12:00:00Z"}, event: {value: view}, campaignId: {value: 12},
  variationId: {value: 1}}
events: [{each: list, fields: {eventId: id}}]
`})
	for events, want := range map[int]string{
		1000: `{"accepted":1,"ignored":0,"rejected":0}`, 1001: `{"accepted":0,"ignored":0,"rejected":1}`,
	} {
		var list []string
		for i := range events {
			list = append(list, fmt.Sprintf(`{"id":%d}`, i))
		}
		text := s.PostItems(key, `{"v":"a","list":[`+strings.Join(list, ",")+"]}").Send().Text
		check.Equal(t, strings.TrimSpace(text), want, "%d events", events)
	}
}
