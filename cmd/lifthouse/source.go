package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/bounds"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"
	"lifthouse/schema/ingest"

	"github.com/spf13/cobra"
)

const sourceAddHelp = `Add makes an address for a sender of events: POST /in/ and a key. The requests of GrowthBook's SDK, Segment,
RudderStack, PostHog, the tag for browsers, Shopify and WooCommerce are read as they are, by a shipped mapping of this
name. Add prints what to paste at the sender. Only a digest of the key is stored, so it cannot be shown again.

  lifthouse source add growthbook --domain shop.example.com
  lifthouse source add shopify --secret-file /etc/lifthouse/shopify.secret
  lifthouse source add crm --mapping crm.yaml

A client with a key can add events to its website and nothing else. The key of a page is public: with --views-only, its
purchases are rejected, and another source with a secret sends them.`

func (p *program) sourceAddCommand() *cobra.Command {
	var domain, name, mapping string
	var website int64
	var rate int
	sender := catalogue.Sender{}
	cmd := &cobra.Command{
		Use:   "add " + strings.Join(ingest.ShippedMappings(), "|") + " | NAME --mapping FILE",
		Short: "Make an address for a sender, and print what to paste there", Long: sourceAddHelp,
		Args: func(_ *cobra.Command, args []string) error {
			names := ingest.ShippedMappings()
			if len(args) != 1 || mapping == "" && !slices.Contains(names, args[0]) {
				return usageError{fmt.Errorf("source add: the sender %s, or a name with --mapping FILE",
					faults.OneOf(names...))}
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&domain, "domain", "", "domain of the website, which is created if the store does not have it")
	bounds.Var(flags, &website, "website", 0, 0, bounds.MaxID, "id of the website; required if there are several")
	flags.StringVar(&name, "name", "", "name of the source; default: that of the mapping")
	flags.StringVar(&mapping, "mapping", "", "YAML file with an own mapping, which may extend a shipped one")
	flags.BoolVar(&sender.ViewsOnly, "views-only", false, "reject goals: for the key of a page, which is public")
	flags.StringVar(&sender.SecretFile, "secret-file", "",
		"file with the secret with which Shopify or WooCommerce signs its webhooks")
	bounds.Var(flags, &rate, "rate", catalogue.DefaultRate, 0, 1_000_000, "limit of events per second; 0: none")
	p.publicURLFlag(flags)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
			owned, site, err := p.websiteOfSource(ctx, s, domain, website)
			if err != nil {
				return err
			}
			if sender.Mapping = args[0]; mapping != "" {
				text, err := os.ReadFile(p.absolutePath(mapping))
				if err != nil {
					return err
				}
				sender.Mapping = string(text)
			}
			if sender.SecretFile != "" {
				sender.SecretFile = p.absolutePath(sender.SecretFile)
				if _, err := os.Stat(sender.SecretFile); err != nil {
					return fmt.Errorf("--secret-file: %w", err)
				}
			}
			if _, err := ingest.NewIntake(sender.Mapping, site, args[0], sender.ViewsOnly); err != nil {
				return fmt.Errorf("--mapping %s: %w", mapping, err)
			}
			sender.Rate = &rate
			key, _, err := s.Catalogue.CreateToken(ctx, catalogue.Token{
				AccountID: owned, WebsiteID: site, Name: cmp.Or(name, args[0]),
				Scopes: []catalogue.Scope{catalogue.ScopeIngest}, Sender: &sender,
			})
			if err != nil {
				return fmt.Errorf("source add: %w", err)
			}
			address := p.publicURL() + "/in/" + key
			p.printLine("%s", address)
			_, bare, _ := strings.Cut(address, "://") // as Segment's SDK for browsers needs it
			texts := strings.NewReplacer("{ADDRESS}", address, "{BARE}", bare, "{HOST}", p.publicURL(), "{KEY}", key)
			p.printDiagnostic("%s\nThen: lifthouse source list",
				texts.Replace(cmp.Or(sourceTexts[args[0]], "Send JSON to this address.")))
			return nil
		})
	}
	return cmd
}

// sourceTexts say what to paste at each sender.
var sourceTexts = map[string]string{
	"growthbook": `In the page, with GrowthBook's script, add the attribute
  data-event-ingestor-host="{ADDRESS}"
or with the SDK: growthbookTrackingPlugin({ingestorHost: "{ADDRESS}"})`,
	"segment": `In Segment: Connections, Destinations, Webhooks (Actions), URL {ADDRESS}
or with the Node SDK: new Analytics({writeKey, host: "{HOST}", path: "/in/{KEY}"})
or in the browser: analytics.load(writeKey, {integrations: {"Segment.io": {apiHost: "{BARE}"}}})`,
	"rudderstack": `With the Node SDK: new Analytics(writeKey, {dataPlaneUrl: "{ADDRESS}"})
or in the browser: rudderanalytics.load(writeKey, "{ADDRESS}")`,
	"posthog": `In PostHog: Data pipelines, Destinations, HTTP Webhook, URL {ADDRESS}
with the JSON body
  {"uuid": "{event.uuid}", "event": "{event.event}", "distinct_id": "{event.distinct_id}",
   "timestamp": "{event.timestamp}", "properties": "{event.properties}"}
or with the Node SDK: new PostHog(key, {host: "{ADDRESS}"})`,
	"tag": `In the head of each page, or as a custom HTML tag of Google Tag Manager on all pages:
  <script src="{ADDRESS}.js" async></script>
It sends the experiments, purchases and other goals that the page reports to Google Analytics. The visitor is the cookie
_ga; name another one with data-visitor="gbuuid". A tool that does not report to Google Analytics needs this line where
it shows a variation:
  dataLayer.push({event: "experiment_viewed", experiment_id: "checkout-layout", variation_id: "b"})
For purchases in Shopify, whose thank-you page runs no scripts: Settings, Customer events, Add custom pixel
  analytics.subscribe("checkout_completed", async (event) => {
    const cookie = await browser.cookie.get("_ga"), checkout = event.data.checkout;
    if (cookie) fetch("{ADDRESS}", {method: "POST", keepalive: true, body: JSON.stringify({
      visitor: cookie.replace(/^GA\d\.[\d-]+\./, ""),
      batch: [{id: event.id, event: "purchase", order: checkout.token, value: checkout.totalPrice.amount}]})});
  });`,
	"shopify": `In Shopify: Settings, Notifications, Webhooks: Order creation and Order update, format JSON, URL
  {ADDRESS}
and with its secret: lifthouse source add shopify --secret-file FILE
In the theme, so that orders name their visitor:
  <script>
    const ga = /(?:^|; )_ga=GA\d\.[\d-]+\.([^;]+)/.exec(document.cookie);
    if (ga) fetch("/cart/update.js", {method: "POST", headers: {"Content-Type": "application/json"},
      body: JSON.stringify({attributes: {lifthouse: ga[1]}})});
  </script>
Without webhooks and this script, the pixel that lifthouse source add tag prints reports purchases, but no refunds.`,
	"woocommerce": `In WooCommerce: Settings, Advanced, Webhooks: Order created and Order updated, delivery URL
  {ADDRESS}`,
}

// websiteOfSource returns the account and the website of a new source. It creates the website of a domain that the
// store does not have, and the first account.
func (p *program) websiteOfSource(ctx context.Context, s *app.Store, domain string, id int64) (account, website int64,
	err error,
) {
	snapshot := s.Catalogue.Snapshot()
	last := int64(0)
	for _, owned := range snapshot.AllAccounts() {
		account = owned.ID
		for _, site := range catalogue.ByID(owned.Websites) {
			last = max(last, site.ID)
			if domain != "" && site.Domain == domain || domain == "" && site.ID == id {
				return owned.ID, site.ID, nil
			}
		}
	}
	if domain == "" {
		if account, err = accountOr(0, snapshot); err != nil {
			return 0, 0, errors.Join(err, errors.New("or name the website: --domain shop.example.com"))
		}
		website, err = websiteOr(id, snapshot.AccountResources(account))
		return account, website, err
	}
	declared := catalogue.Account{ID: cmp.Or(account, 1), Name: domain}
	if account != 0 {
		declared.Name = snapshot.AccountResources(account).Name
	}
	declared.Websites = []catalogue.Website{{ID: last + 1, Domain: domain}}
	_, err = s.Catalogue.ApplyFile(ctx, catalogue.File{Accounts: []catalogue.Account{declared}}, false)
	return declared.ID, last + 1, err
}

// publicURL returns the base of the links that a command makes.
func (p *program) publicURL() string {
	return cmp.Or(p.serving.API.PublicURL, p.server.API.PublicURL, "http://"+app.DefaultListen)
}

func (p *program) sourceListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the sources, and what has arrived from each", Args: noArgs,
		Long: `List prints the sources of an account, and what has arrived from each since the server started. IGNORED are
events that the mapping has no use for, by their names. NO VISITOR are those without a visitor, such as orders at a
point of sale, or of visitors without consent.`,
	}
	return p.onAccount(cmd, func(_ context.Context, s *app.Store, owned *catalogue.AccountResources, _ []string) error {
		rows := [][]any{{
			"ID", "SOURCE", "WEBSITE", "LAST REQUEST", "ACCEPTED", "PURCHASES", "NO VISITOR", "IGNORED", "REJECTED",
		}}
		buying := map[int64][]string{} // sources of purchases, by website
		for _, token := range s.Catalogue.Snapshot().AccountTokens(owned.ID) {
			if token.Sender == nil {
				continue
			}
			c := s.CountsOf(&token)
			last := "never"
			if !c.Last.IsZero() {
				last = c.Last.Format(time.RFC3339)
			}
			if c.Purchases > 0 {
				buying[token.WebsiteID] = append(buying[token.WebsiteID], token.Name)
			}
			rows = append(rows, []any{
				token.ID, token.Name, token.WebsiteID, last, c.Accepted, c.Purchases, c.NoVisitor,
				c.Ignored - c.NoVisitor, c.Rejected,
			})
		}
		if len(rows) == 1 {
			p.printLine("Account %d has no source; make one with lifthouse source add.", owned.ID)
			return nil
		}
		if err := p.printTable(rows); err != nil {
			return err
		}
		p.explainSources(s, owned)
		for _, website := range slices.Sorted(maps.Keys(buying)) {
			if names := buying[website]; len(names) > 1 {
				p.printLine("\nWarning: purchases of website %d come from several sources, %s: an order counts twice "+
					"unless both send the same visitor and order id. Let one source send them.", website,
					strings.Join(names, ", "))
			}
		}
		return nil
	})
}

// mostWithoutVisitor is the share of purchases without a visitor above which something is probably wrong.
const mostWithoutVisitor = .3

// explainSources prints the names of ignored events, and why purchases may have no visitor.
func (p *program) explainSources(s *app.Store, owned *catalogue.AccountResources) {
	for _, token := range s.Catalogue.Snapshot().AccountTokens(owned.ID) {
		if token.Sender == nil {
			continue
		}
		c := s.CountsOf(&token)
		var names []string
		for _, name := range slices.Sorted(maps.Keys(c.Names)) {
			names = append(names, fmt.Sprintf("%s (%d)", cmp.Or(name, "without a name"), c.Names[name]))
		}
		if len(names) > 0 {
			p.printLine("\nIgnored of %s: %s", token.Name, strings.Join(names, ", "))
		}
		if all := c.Accepted + c.NoVisitor; float64(c.NoVisitor) > mostWithoutVisitor*float64(all) {
			p.printLine("\n%d of %d of %s have no visitor: does the theme write the visitor's id into the cart, and "+
				"may visitors refuse consent? See docs/data-in.md.", c.NoVisitor, all, token.Name)
		}
	}
}
