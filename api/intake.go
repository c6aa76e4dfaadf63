package api

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	_ "embed" // the tag
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"lifthouse/api/results"
	"lifthouse/engine/query"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"
	"lifthouse/schema/ingest"

	"github.com/gin-gonic/gin"
	"github.com/klauspost/compress/gzhttp"
	"go.yaml.in/yaml/v4"
	"golang.org/x/time/rate"
)

// Taken is the answer to a request of a source. It has the status 200 even if all items were rejected: many senders
// repeat a request that is answered with an error, and finally give up.
type Taken struct {
	Accepted int `json:"accepted"` // items that are stored
	Ignored  int `json:"ignored"`  // items that the mapping has no event for, and those without a visitor
	Rejected int `json:"rejected"` // invalid items
}

// SourceCounts are what arrived from a source since the start of the process.
type SourceCounts struct {
	LastRequest *time.Time     `json:"lastRequest"` // nil: none
	Accepted    int            `json:"accepted"`
	Purchases   int            `json:"purchases"`  // accepted events of the goal purchase
	NoCurrency  int            `json:"noCurrency"` // of these, those with an amount and without a currency
	NoVisitor   int            `json:"noVisitor"`  // ignored, because the item names neither a visitor nor a customer
	ByCustomer  int            `json:"byCustomer"` // accepted, of a customer and without a visitor
	Ignored     map[string]int `json:"ignored"`    // other ignored items, by what the sender calls them
	Rejected    int            `json:"rejected"`
	Cut         int            `json:"cut"` // accepted, with attributes that were too long and are cut
	// Dropped are the own attributes, properties and fields of lines of accepted items that were invalid, or too many.
	Dropped map[string]int `json:"dropped"`
}

// sender is a source whose requests have arrived.
type sender struct {
	intake   *ingest.Intake
	limiter  *rate.Limiter // of events
	purchase int64         // id of the goal purchase

	mu     sync.Mutex
	counts SourceCounts // guarded by mu
}

// senderOf returns the sender of a token. Tokens do not change, so neither do senders.
func (s *API) senderOf(token *catalogue.Token) (*sender, error) {
	if known, has := s.senders.Load(token.Digest); has {
		return known.(*sender), nil
	}
	intake, err := ingest.NewIntake(token.Sender.Mapping, token.WebsiteID, token.Name, token.Sender.ViewsOnly)
	if err != nil {
		return nil, err
	}
	perSecond := *cmp.Or(token.Sender.Rate, new(catalogue.DefaultRate))
	limit := rate.Limit(perSecond)
	burst := perSecond
	if perSecond == 0 {
		limit, burst = rate.Inf, ingest.MaxItems
	}
	purchase, _, _ := schema.IDOf(token.WebsiteID, schema.NameGoal, "purchase") // a valid key
	made := &sender{
		intake: intake, limiter: rate.NewLimiter(limit, burst), purchase: purchase,
		counts: SourceCounts{Ignored: map[string]int{}, Dropped: map[string]int{}},
	}
	of, _ := s.senders.LoadOrStore(token.Digest, made)
	return of.(*sender), nil
}

// CountsOf returns what arrived from the source of a token since the start of the process.
func (s *API) CountsOf(token *catalogue.Token) SourceCounts {
	known, has := s.senders.Load(token.Digest)
	if !has {
		return SourceCounts{}
	}
	of := known.(*sender)
	of.mu.Lock()
	defer of.mu.Unlock()
	counts := of.counts
	counts.Ignored = maps.Clone(counts.Ignored)
	counts.Dropped = maps.Clone(counts.Dropped)
	return counts
}

// The headers in which senders sign a body: base64(HMAC-SHA256(body)).
var signatureHeaders = []string{"X-Shopify-Hmac-Sha256", "X-Wc-Webhook-Signature"}

// checkSignature returns an error unless the body is signed with the secret of the sender, if it has one.
func (s *API) checkSignature(token *catalogue.Token, header http.Header, body []byte) error {
	if !token.Sender.IsSigned() {
		return nil
	}
	secret, err := token.Sender.ReadSecret(s.Secrets)
	if err != nil {
		return unavailable("secret_unavailable", "the secret of the source cannot be read; the log has the cause",
			0, err)
	}
	mac := hmac.New(sha256.New, secret)
	_, _ = mac.Write(body) // never fails
	for _, name := range signatureHeaders {
		given, err := base64.StdEncoding.DecodeString(header.Get(name))
		if err == nil && hmac.Equal(given, mac.Sum(nil)) {
			return nil
		}
	}
	return newRefusal(http.StatusUnauthorized, "invalid_signature",
		"the body must be signed with the secret of the source, in one of the headers "+
			strings.Join(signatureHeaders, ", "))
}

// tokenOfKey returns the token whose secret is the key in the path.
func (s *API) tokenOfKey(c *gin.Context, key string) (*catalogue.Token, error) {
	token, known := s.Catalogue.Snapshot().FindToken(catalogue.DigestOf(key), time.Now())
	if known && token.Sender != nil {
		recordOf(c.Request.Context()).token = token
		return &token, nil
	}
	if p := s.checkFailureRate(c.Request); p != nil {
		return nil, p
	}
	return nil, newRefusal(http.StatusUnauthorized, "invalid_key",
		"the key in the path is unknown or revoked; create one with lifthouse source add")
}

// admitItems returns an error if a number of items exceeds the rate of a source. At most the items of a second are
// admitted at once, or one request with more items: later requests then wait until its items would have arrived at the
// rate.
func (s *API) admitItems(of *sender, arrived time.Time, items int) error {
	burst := of.limiter.Burst()
	reserved := of.limiter.ReserveN(arrived, min(items, burst))
	wait := reserved.DelayFrom(arrived)
	if wait <= 0 {
		for items -= burst; items > 0; items -= burst {
			of.limiter.ReserveN(arrived, min(items, burst))
		}
		return nil
	}
	reserved.CancelAt(arrived)
	return s.rateLimited(wait, fmt.Sprintf("the limit of the source is %v events per second", of.limiter.Limit()))
}

// takeItems stores the events of a request of a source. It returns after they are stored.
func (s *API) takeItems(c *gin.Context) (any, error) {
	arrived := time.Now().UTC()
	token, err := s.tokenOfKey(c, c.Param("key"))
	if err != nil {
		return nil, err
	}
	of, err := s.senderOf(token)
	if err != nil {
		return nil, err
	}
	held := &body{of: s.bodies}
	defer held.releaseMemory()
	// The body is read as it was signed. Its first bytes show whether it is compressed.
	c.Request.Header.Del("Content-Encoding")
	if err := s.readBody(c.Request, held, ingest.MaxItemText); err != nil {
		return nil, err
	}
	if err := s.checkSignature(token, c.Request.Header, held.text); err != nil {
		return nil, err
	}
	ctx, cancel := results.WithDeadline(c.Request.Context(), s.options.Timeout) // the body has arrived
	defer cancel()
	if bytes.HasPrefix(held.text, []byte("webhook_id=")) { // WooCommerce tests a new webhook in the form of a page
		return Taken{}, nil
	}
	names, err := s.Collector.Names(ctx)
	if err != nil {
		return nil, s.intakeProblem(c, err)
	}
	request := &ingest.Request{
		Arrived: arrived, Header: c.GetHeader, Key: c.GetHeader(keyHeader), Times: s.Times, Names: names,
		Admit: func(items int) error { return s.admitItems(of, arrived, items) },
	}
	counts := SourceCounts{LastRequest: &arrived, Ignored: map[string]int{}, Dropped: map[string]int{}}
	var events []schema.Event
	err = of.intake.ParseBody(held.text, request, func(item *ingest.Item) {
		if item.Reject != nil {
			s.Journal.BufferRejects(*item.Reject)
		}
		counts.countItem(item, of.purchase)
		events = append(events, item.Events...)
	})
	if _, isUnread := errors.AsType[*ingest.BodyError](err); isUnread {
		return nil, bodyProblem(err)
	}
	if err != nil {
		return nil, err
	}
	taken := Taken{counts.Accepted, counts.NoVisitor, counts.Rejected}
	for _, items := range counts.Ignored {
		taken.Ignored += items
	}
	if len(events) > 0 {
		if err := s.Collector.WriteSoon(ctx, events); err != nil {
			return nil, s.intakeProblem(c, err)
		}
	}

	of.addCounts(&counts)
	s.metrics.sources.WithLabelValues(token.Name, "accepted").Add(float64(taken.Accepted))
	s.metrics.sources.WithLabelValues(token.Name, "ignored").Add(float64(taken.Ignored))
	s.metrics.sources.WithLabelValues(token.Name, "rejected").Add(float64(taken.Rejected))
	s.metrics.sources.WithLabelValues(token.Name, "cut").Add(float64(counts.Cut))
	return taken, nil
}

// countItem counts an item of a request. purchase is the goal of purchases.
func (c *SourceCounts) countItem(item *ingest.Item, purchase int64) {
	switch {
	case item.Reject != nil:
		c.Rejected++
		return
	case item.Ignored && item.NoVisitor:
		c.NoVisitor++
		return
	case item.Ignored:
		c.Ignored[faults.Clip(item.Name, maxItemName)]++
		return
	}
	c.Accepted++
	if item.OfCustomer {
		c.ByCustomer++
	}
	if item.Cut {
		c.Cut++
	}
	for kind, n := range item.Dropped {
		c.Dropped[kind] += n
	}
	for _, goal := range item.Goals {
		if goal.ID != purchase {
			continue
		}
		c.Purchases++
		if !goal.HasCurrency {
			c.NoCurrency++
		}
	}
}

// maxItemName is the maximum size of the name of ignored items that is kept, in bytes.
const maxItemName = 100

// addCounts adds the counts of a request. Of the names of ignored items, the first ones are kept.
func (of *sender) addCounts(counts *SourceCounts) {
	of.mu.Lock()
	defer of.mu.Unlock()
	all := &of.counts
	all.LastRequest = counts.LastRequest
	all.Accepted += counts.Accepted
	all.Rejected += counts.Rejected
	all.Cut += counts.Cut
	all.Purchases += counts.Purchases
	all.NoCurrency += counts.NoCurrency
	all.NoVisitor += counts.NoVisitor
	all.ByCustomer += counts.ByCustomer
	for kind, n := range counts.Dropped {
		all.Dropped[kind] += n
	}
	for name, items := range counts.Ignored {
		if _, known := all.Ignored[name]; !known && len(all.Ignored) >= 200 {
			name = "others"
		}
		all.Ignored[name] += items
	}
}

// tag is the script for pages that sends to the source. make assets builds it from tag.js.
//
//go:embed tag/tag.min.js
var tag []byte

// sendTag sends the tag. Its address is the key with the ending .js.
func (s *API) sendTag(c *gin.Context) (any, error) {
	key, isScript := strings.CutSuffix(c.Param("key"), ".js")
	if !isScript {
		c.Header("Allow", "POST, OPTIONS")
		return nil, newRefusal(http.StatusMethodNotAllowed, "method_not_allowed", "allowed methods: POST, OPTIONS")
	}
	if _, err := s.tokenOfKey(c, key); err != nil {
		return nil, err
	}
	c.Header(gzhttp.HeaderNoCompression, "true") // one encoding, so the entity tag is strong
	strong := strings.TrimPrefix(entityTag(string(tag)), "W/")
	return reply{kind: javaScript, body: tag, tag: strong, keep: "max-age=3600"}, nil
}

const javaScript = "text/javascript"

// intakePath begins the addresses of sources.
const intakePath = "/in/"

// Sources are the sources of an account, what is wrong with them, and the senders that can become one.
type Sources struct {
	Sources  []Source        `json:"sources"` // by id
	Warnings []SourceWarning `json:"warnings"`
	Senders  []Sender        `json:"senders"` // with the placeholder {KEY} for the key
	Orders   []OrderChanges  `json:"orders"`  // by website and goal
}

// Source is a source and what arrived from it since the start of the process.
type Source struct {
	ID        int64  `json:"id"` // of its token
	Name      string `json:"name"`
	WebsiteID int64  `json:"websiteId"`
	Mapping   string `json:"mapping"` // name of a shipped mapping, or own
	SourceCounts
}

// SourceWarning says what is probably wrong with sources of a website.
type SourceWarning struct {
	WebsiteID int64  `json:"websiteId"`
	Message   string `json:"message"`
}

// Sender is a product that can send events, and what to paste there.
type Sender struct {
	Name  string `json:"name"` // of its mapping
	Title string `json:"title"`
	Text  string `json:"text"`

	Visitor Visitor `json:"-" yaml:"visitor"`
}

// NewSources returns the sources among tokens, with what arrived from each. names has the numbers of names by website.
func NewSources(
	tokens []catalogue.Token, countsOf func(*catalogue.Token) SourceCounts, names map[int64]ingest.NameCounts,
) Sources {
	list := Sources{Sources: []Source{}, Warnings: []SourceWarning{}, Orders: []OrderChanges{}}
	buying := map[int64][]*catalogue.Token{} // of sources of purchases, by website
	websites := map[int64]bool{}
	for i := range tokens {
		token := &tokens[i]
		if token.Sender == nil {
			continue
		}
		c := countsOf(token)
		source := Source{token.ID, token.Name, token.WebsiteID, "own", c}
		if c.Ignored == nil {
			source.Ignored = map[string]int{}
			source.Dropped = map[string]int{}
		}
		if ingest.IsShipped(token.Sender.Mapping) {
			source.Mapping = token.Sender.Mapping
		}
		list.Sources = append(list.Sources, source)
		websites[token.WebsiteID] = true
		if c.Purchases > 0 {
			buying[token.WebsiteID] = append(buying[token.WebsiteID], token)
		}
		if c.NoCurrency > 0 {
			list.Warnings = append(list.Warnings, noCurrencyWarning(token, &c))
		}
		if all := c.Accepted + c.NoVisitor; float64(c.NoVisitor) > .3*float64(all) {
			list.Warnings = append(list.Warnings, SourceWarning{token.WebsiteID, fmt.Sprintf(
				"%d of %d of %s have no visitor: does the theme write the visitor's id into the cart, and may "+
					"visitors refuse consent? See docs/data-in.md.", c.NoVisitor, all, token.Name,
			)})
		}
	}
	for _, website := range slices.Sorted(maps.Keys(websites)) {
		if of := names[website]; of.Forgotten > 0 || of.Undeclared >= ingest.MaxWebsiteNames*9/10 {
			list.Warnings = append(list.Warnings, SourceWarning{website, fmt.Sprintf(
				"Website %d has %d names of campaigns and goals that are not declared, of at most %d, and %d were "+
					"forgotten with their events, the rarest first: somebody may invent them with a key. lifthouse "+
					"discover --drop deletes them all, and lifthouse token revoke ends a key.",
				website, of.Undeclared, ingest.MaxWebsiteNames, of.Forgotten,
			)})
		}
	}
	for _, website := range slices.Sorted(maps.Keys(buying)) {
		if names := namesOfRivals(buying[website]); len(names) > 1 {
			list.Warnings = append(list.Warnings, SourceWarning{website, fmt.Sprintf(
				"Purchases of website %d come from several sources, %s: an order counts twice unless both send the "+
					"same visitor and order id. Let one source send them.", website, strings.Join(names, ", "),
			)})
		}
	}
	return list
}

//go:embed senders.yaml
var sendersYAML []byte

// senders are what people use, and what to paste there.
var senders = func() (all []Sender) {
	if err := yaml.Load(sendersYAML, &all); err != nil {
		panic(err) // the file is part of the program
	}
	return all
}()

// PasteText returns what to paste at a sender with a key, whose requests arrive at a URL. views is the sender of the
// views, whose visitors purchases must name; empty: not known.
func PasteText(sender, views, publicURL, key string) string {
	text := "Send JSON to {ADDRESS}"
	if at := slices.IndexFunc(senders, func(s Sender) bool { return s.Name == sender }); at >= 0 {
		text = strings.NewReplacer(viewSlots(views)...).Replace(senders[at].Text)
	}
	address := SourceAddress(publicURL, key)
	_, bare, _ := strings.Cut(address, "://") // as Segment's SDK for browsers needs it
	return strings.NewReplacer("{ADDRESS}", address, "{BARE}", bare, "{HOST}", publicURL, "{KEY}", key).Replace(text)
}

// SourceAddress returns the address of a source.
func SourceAddress(publicURL, key string) string { return publicURL + intakePath + key }

// listSources returns the sources of the token's websites.
func (s *API) listSources(c *gin.Context) (any, error) {
	p := query.ReadParameters(c.Request.URL.RawQuery, websiteIDName)
	asked := p.ID(websiteIDName)
	if err := p.Err(); err != nil {
		return nil, err
	}
	owned, website, err := s.searchedWebsite(c, asked)
	if err != nil {
		return nil, err
	}
	tokens := slices.DeleteFunc(s.Catalogue.Snapshot().AccountTokens(owned.ID), func(t catalogue.Token) bool {
		return t.WebsiteID != cmp.Or(website, t.WebsiteID)
	})
	names, err := s.Collector.Names(c.Request.Context())
	if err != nil {
		return nil, source.StoreFailure(c.Request.Context(), err)
	}
	list := NewSources(tokens, s.CountsOf, names.CountNames())
	if err := list.WarnOfUnseen(c.Request.Context(), s.Engine); err != nil {
		return nil, err
	}
	if err := list.AddOrderChanges(c.Request.Context(), s.Engine, owned, list.Websites()); err != nil {
		return nil, err
	}
	for _, sender := range senders {
		sender.Text = PasteText(sender.Name, "", s.options.PublicURL, "{KEY}")
		list.Senders = append(list.Senders, sender)
	}
	return list, nil
}
