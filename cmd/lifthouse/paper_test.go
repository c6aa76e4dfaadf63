package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// paperShop is a shop on paper: it knows the fate of each of its orders, and sends what GrowthBook's SDK and Shopify send.
type paperShop struct {
	*house
	*rand.Rand
	dir    string
	secret string
	began  time.Time
	orders []paperOrder
}

// paperOrder is an order of the shop. Amounts are in cents of the shop's currency.
type paperOrder struct {
	number    int64
	visitor   string // empty: a till, or no consent
	variation int
	at        time.Time
	total     int64 // after edits
	refunded  int64
	edited    int64 // what it was before an edit; 0: none
	cancelled bool
	renewal   string // source or tag: a renewal that carries the attributes of the cart
	foreign   bool   // the buyer pays in yen
	lost      bool   // placed while the server was down
	lateLost  bool   // refunded while the server was down
}

const paperCatalogue = `accounts:
  - id: 1
    name: Shop
    websites:
      - id: 1
        domain: shop.example.com
        currency: EUR
        goals: [{key: purchase, name: Purchase}]
        campaigns:
          - {key: checkout-layout, name: Checkout layout, type: experiment, primaryGoalId: purchase,
             significanceLevel: 95, controlShare: 50, startDate: 2026-01-01,
             variations: [{key: b, name: B, share: 100}]}
`

func newPaperShop(t *testing.T, orders int) *paperShop {
	t.Helper()
	s := &paperShop{
		house: newHouse(t), Rand: rand.New(rand.NewPCG(75, 2)), dir: t.TempDir(), secret: "a secret of the webhooks",
		// a source takes its arrival as the time: never before the views
		began: time.Now().UTC().Truncate(time.Second).Add(time.Hour),
	}
	must.OK(t, os.WriteFile(s.path("catalog.yaml"), []byte(paperCatalogue), 0o600))
	must.OK(t, os.WriteFile(s.path("secret"), []byte(s.secret+"\n"), 0o600))
	for i := range orders {
		o := paperOrder{
			number: 5_000_000_001_000 + int64(i), variation: i % 2, visitor: fmt.Sprintf("92260d77-%d", i),
			at:    s.began.Add(time.Duration(i) * time.Second),
			total: 500 + s.Int64N(30_000), lost: i%14 == 7, foreign: i%100 == 3,
		}
		switch n := s.IntN(100); {
		case n < 5:
			o.cancelled = true
		case n < 12:
			o.refunded = 1 + s.Int64N(o.total)
			o.lateLost = n == 11
		case n < 17:
			o.edited = o.total + 1 + s.Int64N(5000)
		case n < 20:
			o.renewal = []string{"source", "tag"}[n%2]
		case n < 22:
			o.visitor = ""
		}
		s.orders = append(s.orders, o)
	}
	return s
}

func (s *paperShop) path(name string) string { return filepath.Join(s.dir, name) }

var keyOf = regexp.MustCompile(`lh_[\w-]{43}`)

// addSource adds a source as the docs say, and returns its key and what to paste.
func (s *paperShop) addSource(args ...string) (key, text string) {
	s.t.Helper()
	code, out, text := s.run(append([]string{"source", "add", "--rate=0"}, args...)...)
	must.Equal(s.t, code, exitOK, text)
	return keyOf.FindString(out), text
}

// post sends a body to a source.
func (s *paperShop) post(key string, body []byte, header map[string]string) {
	request := must.Get(http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+"/in/"+key,
		bytes.NewReader(body)))(s.t)
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	must.OK(s.t, err)
	text, _ := io.ReadAll(response.Body)
	_ = response.Body.Close()
	check.Equal(s.t, response.StatusCode, http.StatusOK, string(text))
}

// concurrently calls do for each order that a condition holds for. A source collects the requests of some time.
func (s *paperShop) concurrently(do func(*paperOrder)) {
	var sending sync.WaitGroup
	slots := make(chan struct{}, 300)
	for i := range s.orders {
		slots <- struct{}{}
		sending.Go(func() {
			defer func() { <-slots }()
			do(&s.orders[i])
		})
	}
	sending.Wait()
}

// sendViews sends what the SDK of GrowthBook sends, recorded from version 1.8.0. Two of three visitors buy nothing.
func (s *paperShop) sendViews(key string) {
	var items []map[string]any
	view := func(device string, variation int) {
		id := []string{"0", "b"}[variation]
		items = append(items, map[string]any{
			"event_name": "Experiment Viewed",
			"properties_json": map[string]any{
				"experimentId": "checkout-layout", "variationId": id,
				"hashAttribute": "id", "hashValue": device,
			},
			"user_id": nil, "device_id": device, "page_id": nil, "session_id": nil, "sdk_language": "js",
			"sdk_version": "1.8.0", "url": "https://shop.example.com/",
			"context_json": map[string]any{
				"url": "https://shop.example.com/", "path": "/", "host": "shop.example.com",
				"query": "", "browser": "chrome", "deviceType": "desktop",
			},
		})
	}
	for i := range s.orders {
		if o := &s.orders[i]; o.visitor != "" {
			view(o.visitor, o.variation)
		}
		view(fmt.Sprintf("looker-%d", i), 0)
		view(fmt.Sprintf("gazer-%d", i), 1)
	}
	for some := range slices.Chunk(items, 1000) {
		s.post(key, must.Get(json.Marshal(some))(s.t), nil)
	}
}

// inYen returns an amount of the buyer.
func inYen(cents int64) string { return fmt.Sprint(cents * 16 / 10) }

func inCents(cents int64) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }

// sendPixels sends what the pixel sends: the buyer's amount, in the buyer's currency, and the number of the order, or of
// some orders the token of the checkout.
func (s *paperShop) sendPixels(key string) {
	s.concurrently(func(o *paperOrder) {
		if o.visitor == "" || o.lost || o.renewal != "" || o.number%5 == 0 && !o.foreign {
			return
		}
		value, currency, id := inCents(max(o.edited, o.total)), "EUR", fmt.Sprint(o.number)
		if o.foreign {
			value, currency = inYen(o.total), "JPY"
		}
		if o.number%7 == 0 {
			id = fmt.Sprint("token-", o.number)
		}
		s.post(key, fmt.Appendf(nil, `{"visitor":%q,"batch":[{"id":"sh-%d","event":"purchase","order":%q,"value":%s,"currency":%q}]}`, o.visitor, o.number, id, value, currency), nil)
	})
}

// sendWebhooks sends the signed webhooks of each order: its creation, an edit, a refund or the cancellation, in any order.
func (s *paperShop) sendWebhooks(key string) {
	s.concurrently(func(o *paperOrder) {
		if o.lost {
			return
		}
		type state struct {
			topic, cancelled string
			total            int64
			revised          time.Duration
		}
		states := []state{{"orders/create", "null", max(o.edited, o.total), 0}}
		if o.edited > 0 {
			states = append(states, state{"orders/updated", "null", o.total, time.Minute})
		}
		if o.refunded > 0 && !o.lateLost {
			states = append(states, state{"orders/updated", "null", o.total - o.refunded, 2 * time.Minute})
		}
		if o.cancelled {
			states = append(states,
				state{
					"orders/cancelled", fmt.Sprintf("%q", o.at.Add(3*time.Minute).Format(time.RFC3339)), 0,
					3 * time.Minute,
				})
		}
		if o.number%3 == 0 {
			slices.Reverse(states)
		}
		for _, of := range states {
			source, tags := "web", "VIP"
			switch o.renewal {
			case "source":
				source = "subscription_contract"
			case "tag":
				tags = "Subscription, Subscription Recurring Order"
			}
			attributes := "[]"
			if o.visitor != "" {
				attributes = fmt.Sprintf(`[{"name":"gift","value":"yes"},{"name":"lifthouse","value":%q}]`, o.visitor)
			}
			body := fmt.Appendf(nil, `{"id":%d,"checkout_token":"token-%[1]d","test":false,"source_name":%q,"tags":%q,"created_at":%q,"updated_at":%q,"cancelled_at":%s,"currency":"EUR","presentment_currency":%q,`+
				`"total_price":%q,"current_total_price":%q,"billing_address":{"country_code":"DE"},"note_attributes":%s}`,
				o.number, source, tags, o.at.Format(time.RFC3339),
				o.at.Add(of.revised-24*time.Hour).Format(time.RFC3339), of.cancelled,
				map[bool]string{true: "JPY", false: "EUR"}[o.foreign], inCents(max(o.edited, o.total)),
				inCents(of.total), attributes)
			mac := hmac.New(sha256.New, []byte(s.secret))
			_, _ = mac.Write(body)
			s.post(key, body,
				map[string]string{
					"X-Shopify-Topic":       of.topic,
					"X-Shopify-Hmac-Sha256": base64.StdEncoding.EncodeToString(mac.Sum(nil)),
				})
		}
	})
}

// export writes Shopify's export of orders: with a byte order mark, quotes, a row for each further item, and the
// attributes of the cart as lines of a cell.
func (s *paperShop) export() string {
	s.t.Helper()
	file := must.Get(os.Create(s.path("orders_export.csv")))(s.t)
	_, err := file.WriteString("\xef\xbb\xbf")
	must.OK(s.t, err)
	w := csv.NewWriter(file)
	w.UseCRLF = true
	header := strings.Split("Name,Email,Financial Status,Currency,Subtotal,Shipping,Taxes,Total,Created at,Lineitem quantity,Lineitem name,Lineitem price,Billing Name,Billing Country,Notes,Note Attributes,Cancelled at,Refunded Amount,Id,Tags,Source", ",")
	must.OK(s.t, w.Write(header))
	zone := time.FixedZone("", 2*60*60)
	for i := range s.orders {
		o := &s.orders[i]
		at := o.at.In(zone).Format("2006-01-02 15:04:05 -0700")
		cancelled, source, tags, notes := "", "web", "VIP", "gift: yes"
		if o.cancelled {
			cancelled = o.at.In(zone).Format("2006-01-02 15:04:05 -0700")
		}
		switch o.renewal {
		case "source":
			source = "subscription_contract"
		case "tag":
			tags = "Subscription, Subscription Recurring Order"
		}
		if o.visitor != "" {
			notes += "\nlifthouse: " + o.visitor
		}
		name := fmt.Sprint("#", 1000+i)
		must.OK(s.t, w.Write([]string{
			name, "buyer@example.com", "paid", "EUR", inCents(o.total), "0.00", "0.00", inCents(o.total), at, "1", `Plate, large "blue"`, "8.00", "Jörg Groß", "DE", "=cmd", notes, cancelled,
			inCents(o.refunded), fmt.Sprint(o.number), tags, source,
		}))
		if i%4 == 0 { // a further item
			item := make([]string, len(header))
			item[0], item[1], item[8], item[9], item[10], item[11] = name, "buyer@example.com", at, "2", "Mug", "4.00"
			must.OK(s.t, w.Write(item))
		}
	}
	w.Flush()
	must.OK(s.t, w.Error())
	must.OK(s.t, file.Close())
	return file.Name()
}

// expect returns the sums of the report: number of orders and value, of all variations, of the orders that counted.
func (s *paperShop) expect(counts func(*paperOrder) bool, cents func(*paperOrder) int64) (orders, sum int64) {
	for i := range s.orders {
		if o := &s.orders[i]; o.visitor != "" && o.renewal == "" && !o.cancelled && counts(o) {
			orders, sum = orders+1, sum+cents(o)
		}
	}
	return orders, sum
}

func (s *paperShop) report() result.Report {
	s.t.Helper()
	return must.JSON[result.Report](s.t, s.must("report", "campaign", "checkout-layout", "--json"))
}

// warnings returns the codes of the warnings of a report.
func warnings(r *result.Report) (codes []string) {
	for _, w := range r.Checks.Warnings {
		codes = append(codes, string(w.Code))
	}
	return codes
}

// TestAShopOnPaper runs the commands of the docs, one after the other, for a shop whose views come from GrowthBook and
// whose orders come from Shopify: pixel, signed webhooks, a day without a server, and the export. Reports and books are
// equal to the cent.
func TestAShopOnPaper(t *testing.T) {
	s := newPaperShop(t, 2000)
	s.must("apply", "-f", s.path("catalog.yaml"))
	views, _ := s.addSource("growthbook", "--domain=shop.example.com", "--views-only")
	tag, pasted := s.addSource("tag", "--domain=shop.example.com")
	check.Contains(t, pasted, `browser.cookie.get("gbuuid")`, "the pixel")
	shopify, pasted := s.addSource("shopify", "--domain=shop.example.com", "--secret-file="+s.path("secret"))
	check.Contains(t, pasted, "gbuuid=", "the script of the theme")

	// The pixel alone: 1 % of the orders are in yen, so no value is known, and the books say so in each currency.
	s.sendViews(views)
	s.sendPixels(tag)
	r := s.report()
	check.Equal(t, fmt.Sprint(warnings(&r)), "[RATE_UNKNOWN]", "warnings with the pixel alone")
	must.That(t, r.Checks.Currencies != nil, "the pixel's amounts are summed: %+v", r.Totals)
	must.That(t, r.Totals.Value.Withheld, "the pixel's amounts are summed: %+v", r.Totals)
	check.Equal(t, strings.Join(r.Checks.Currencies.Unknown, " "), "JPY", "currencies")
	books := s.export()
	_, out, _ := s.run("reconcile", books, "campaign", "checkout-layout", "-m", "shopify-orders")
	check.Contains(t, out, "in another currency here", "the books with the pixel alone")
	check.Equal(t, strings.Count(out, "Difference 0.00 "), 2, out)

	// Webhooks are in the currency of the shop, and revise the pixel's orders.
	s.sendWebhooks(shopify)
	arrived := func(o *paperOrder) bool { return !o.lost }
	orders, cents := s.expect(arrived, func(o *paperOrder) int64 {
		if o.lateLost {
			return o.total
		}
		return o.total - o.refunded
	})
	r = s.report()
	check.Equal(t, len(warnings(&r)), 0, fmt.Sprint(warnings(&r)))
	check.Equal(t, r.Totals.GoalsReached, orders, "orders with webhooks")
	check.Equal(t, r.Totals.Value.Units.Int64(), cents*schema.MoneyScale/100, "value with webhooks")

	// The export brings the orders of the day without a server, and what changed on it. Importing it again changes nothing.
	orders, cents = s.expect(func(*paperOrder) bool { return true },
		func(o *paperOrder) int64 { return o.total - o.refunded })
	for range 2 {
		_, out, complaints := s.run("import", "-m", "shopify-orders", "--as-of",
			time.Now().UTC().Format(time.RFC3339Nano), "--max-event-skew=48h", books)
		check.Contains(t, out, " 0 of ", complaints)
		r = s.report()
		check.Equal(t, r.Totals.GoalsReached, orders, "orders with the export")
		check.Equal(t, r.Totals.Value.Units.Int64(), cents*schema.MoneyScale/100, "value with the export")
	}
	check.Equal(t, len(warnings(&r)), 0, fmt.Sprint(warnings(&r)))
	reconciled := s.must("reconcile", books, "campaign", "checkout-layout", "-m", "shopify-orders")
	head, _, _ := strings.Cut(reconciled, "\n")
	t.Logf("%d orders: %s", len(s.orders), head)
	check.Contains(t, head, "Difference 0.00 EUR.", reconciled)
	for _, line := range []string{
		"not received", "with another amount", "in the report only", "in another currency",
		"cannot be read", "repeated",
	} {
		check.That(t, !strings.Contains(reconciled, line), "the books have orders %s:\n%s", line, reconciled)
	}
	check.Contains(t, s.must("facts", "--verify"), "are those of their events", "facts")

	// Nothing is wrong with the sources.
	list := s.must("source", "list")
	check.That(t, !strings.Contains(list, "Warning"), "sources:\n%s", list)
	check.Contains(t, list, "Ignored of shopify: orders/create, of nobody (", "renewals")
}

// TestPurchasesOfStrangers sends views of GrowthBook and orders whose visitors are those of Google Analytics: the sources
// and the report say that nothing matches.
func TestPurchasesOfStrangers(t *testing.T) {
	s := newPaperShop(t, 40)
	s.must("apply", "-f", s.path("catalog.yaml"))
	views, _ := s.addSource("growthbook", "--domain=shop.example.com")
	shopify, pasted := s.addSource("shopify", "--domain=shop.example.com", "--views=tag")
	check.Contains(t, pasted, "_ga=", "the script for another sender")
	s.sendViews(views)
	for i := range s.orders {
		s.orders[i] = paperOrder{
			number: s.orders[i].number, visitor: fmt.Sprintf("123.%d", i), at: s.orders[i].at,
			total: 1000,
		}
	}
	s.sendWebhooks(shopify)
	r := s.report()
	check.Equal(t, fmt.Sprint(warnings(&r)), "[PURCHASES_WITHOUT_VIEW]", "warnings")
	check.Contains(t, fmt.Sprint(r.Checks.Warnings), "whose visitor has no view: 40 of 40", "report")
	check.Contains(t, s.must("source", "list"), "Purchases whose visitor has no view: 40 of 40.", "sources")
	code, _, complaints := s.run("source", "add", "shopify", "--views=shopify")
	check.Equal(t, code, exitUsage, complaints)
	code, _, complaints = newHouse(t).run("source", "add", "shopify", "--domain=other.example.com")
	check.Equal(t, code, exitUsage, complaints)
	check.Contains(t, complaints, "needs --views", "without a sender of views")
}
