package api

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"lifthouse/engine"
	"lifthouse/schema/catalogue"
)

// Visitor says how scripts of a shop read the id of the visitor that the views of a sender carry.
type Visitor struct {
	Page   string `yaml:"page"`   // expression of a page; empty: the sender has no views
	Cookie string `yaml:"cookie"` // that Shopify's pixel reads; empty: it cannot read the id
	Pixel  string `yaml:"pixel"`  // expression of the pixel about the text of the cookie
}

// tagName is the name of the sender whose text has Shopify's pixel, and shopifyName that of Shopify's webhooks.
const (
	tagName     = "tag"
	shopifyName = "shopify"
)

// NamesVisitors reports whether the text of a sender depends on the sender of the views: its orders must name the same
// visitors.
func NamesVisitors(sender string) bool { return sender == tagName || sender == shopifyName }

// ViewSenders returns the names of the senders of views.
func ViewSenders() (names []string) {
	for i := range senders {
		if senders[i].Visitor.Page != "" {
			names = append(names, senders[i].Name)
		}
	}
	return names
}

// viewSlots returns what replaces the slots of a text about the visitors of the sender of the views.
func viewSlots(views string) []string {
	at := slices.IndexFunc(senders, func(s Sender) bool { return s.Name == views && s.Visitor.Page != "" })
	if at < 0 {
		at = slices.IndexFunc(senders, func(s Sender) bool { return s.Name == tagName })
	}
	v := senders[at].Visitor
	pixel := "The pixel of Shopify cannot read the visitor of " + senders[at].Title + ": use the webhooks of Shopify."
	if v.Cookie != "" {
		pixel = strings.NewReplacer("{COOKIE}", v.Cookie, "{CLEAN}", v.Pixel, "\n", "\n  ").Replace(pixelText)
	}
	return []string{"{PIXEL}", pixel, "{VISITOR}", v.Page, "{VIEWS}", senders[at].Title}
}

// pixelText is the custom pixel of Shopify. The order's number is its id everywhere.
const pixelText = `analytics.subscribe("checkout_completed", async (event) => {
  const cookie = await browser.cookie.get("{COOKIE}"), checkout = event.data.checkout;
  if (cookie) fetch("{ADDRESS}", {method: "POST", keepalive: true, body: JSON.stringify({
    visitor: {CLEAN},
    batch: [{id: event.id, event: "purchase",
      order: String(checkout.order?.id ?? "").match(/\d+$/)?.[0] ?? checkout.token,
      value: checkout.totalPrice.amount, currency: checkout.totalPrice.currencyCode}]})});
});`

// noCurrencyWarning says that purchases of a source have no currency.
func noCurrencyWarning(token *catalogue.Token, c *SourceCounts) SourceWarning {
	text := fmt.Sprintf("%d of %d purchases of %s have no currency, so they count in that of the website.",
		c.NoCurrency, c.Purchases, token.Name)
	if token.Sender.Mapping == tagName {
		text += " The pixel that lifthouse source add tag prints sends it: paste it into Shopify again."
	}
	return SourceWarning{token.WebsiteID, text}
}

// Websites returns the websites of the sources, in order.
func (l *Sources) Websites() (websites []int64) {
	for i := range l.Sources {
		websites = append(websites, l.Sources[i].WebsiteID)
	}
	slices.Sort(websites)
	return slices.Compact(websites)
}

// WarnOfUnseen adds a warning for each website whose purchases are of visitors without a view.
func (l *Sources) WarnOfUnseen(ctx context.Context, e *engine.Engine) error {
	for _, website := range l.Websites() {
		unseen, err := e.ReadUnseen(ctx, website)
		if err != nil {
			return err
		}
		if unseen.IsSuspicious() {
			l.Warnings = append(l.Warnings, SourceWarning{website, fmt.Sprintf(
				"Purchases whose visitor has no view: %d of %d. The script of the shop must write the id that the "+
					"views carry: lifthouse source add shopify --views names their sender.",
				unseen.WithoutView, unseen.Goals,
			)})
		}
	}
	return nil
}

// OrderChanges says how long the orders of a goal change.
type OrderChanges struct {
	WebsiteID int64  `json:"websiteId"`
	GoalID    int64  `json:"goalId"`
	Orders    int64  `json:"orders"`    // of the last 180 days
	Revisions int64  `json:"revisions"` // of these orders that arrived later
	Settle95  string `json:"settle95"`  // by when 95 % of the revisions had arrived, such as 12d; empty: too few
	Settle99  string `json:"settle99"`
	Text      string `json:"text"`
}

// AddOrderChanges adds how long the orders of the websites change.
func (l *Sources) AddOrderChanges(
	ctx context.Context, e *engine.Engine, owned *catalogue.AccountResources, websites []int64,
) error {
	for _, website := range websites {
		changes, err := e.ReadOrderChanges(ctx, website)
		if err != nil {
			return err
		}
		for _, id := range slices.Sorted(maps.Keys(changes)) {
			goal, known := owned.Goals[id]
			of := changes[id]
			if !known || of.Revisions == 0 {
				continue
			}
			shown := OrderChanges{
				WebsiteID: website, GoalID: id, Orders: of.Orders, Revisions: of.Revisions, Text: of.InWords(goal.Name),
			}
			shown.Settle95, shown.Settle99 = of.SettleTexts()
			l.Orders = append(l.Orders, shown)
		}
	}
	return nil
}

// namesOfRivals returns the names of sources of purchases; none if the orders of all of them have the same ids: those
// of Shopify's pixel and of its webhooks.
func namesOfRivals(buying []*catalogue.Token) (names []string) {
	areOfShopify := true
	for _, token := range buying {
		areOfShopify = areOfShopify && NamesVisitors(token.Sender.Mapping)
		names = append(names, token.Name)
	}
	if areOfShopify {
		return nil
	}
	return names
}
