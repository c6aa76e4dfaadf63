package api

import (
	"cmp"
	_ "embed" // the texts of senders
	"fmt"
	"maps"
	"slices"
	"strings"

	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"

	"github.com/gin-gonic/gin"
	"go.yaml.in/yaml/v4"
)

// Sources are the sources of an account, what is wrong with them, and the senders that can become one.
type Sources struct {
	Sources  []Source        `json:"sources"` // by id
	Warnings []SourceWarning `json:"warnings"`
	Senders  []Sender        `json:"senders"` // with the placeholder {KEY} for the key
}

// Source is a source and what arrived from it since the start of the process.
type Source struct {
	ID        int64  `json:"id"` // of its token
	Name      string `json:"name"`
	WebsiteID int64  `json:"websiteId"`
	Mapping   string `json:"mapping"` // name of a shipped mapping, or ownMapping
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
}

// ownMapping is the mapping of a source that is not shipped.
const ownMapping = "own"

// mostWithoutVisitor is the share of items without a visitor above which something is probably wrong.
const mostWithoutVisitor = .3

// NewSources returns the sources among tokens, with what arrived from each.
func NewSources(tokens []catalogue.Token, countsOf func(*catalogue.Token) SourceCounts) Sources {
	list := Sources{Sources: []Source{}, Warnings: []SourceWarning{}}
	buying := map[int64][]string{} // sources of purchases, by website
	for i := range tokens {
		token := &tokens[i]
		if token.Sender == nil {
			continue
		}
		c := countsOf(token)
		source := Source{token.ID, token.Name, token.WebsiteID, ownMapping, c}
		if c.Ignored == nil {
			source.Ignored = map[string]int{}
		}
		if ingest.IsShipped(token.Sender.Mapping) {
			source.Mapping = token.Sender.Mapping
		}
		list.Sources = append(list.Sources, source)
		if c.Purchases > 0 {
			buying[token.WebsiteID] = append(buying[token.WebsiteID], token.Name)
		}
		if all := c.Accepted + c.NoVisitor; float64(c.NoVisitor) > mostWithoutVisitor*float64(all) {
			list.Warnings = append(list.Warnings, SourceWarning{token.WebsiteID, fmt.Sprintf(
				"%d of %d of %s have no visitor: does the theme write the visitor's id into the cart, and may "+
					"visitors refuse consent? See docs/data-in.md.", c.NoVisitor, all, token.Name,
			)})
		}
	}
	for _, website := range slices.Sorted(maps.Keys(buying)) {
		if names := buying[website]; len(names) > 1 {
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

// PasteText returns what to paste at a sender with a key, whose requests arrive at a URL.
func PasteText(sender, publicURL, key string) string {
	text := "Send JSON to {ADDRESS}"
	if at := slices.IndexFunc(senders, func(s Sender) bool { return s.Name == sender }); at >= 0 {
		text = senders[at].Text
	}
	address := SourceAddress(publicURL, key)
	_, bare, _ := strings.Cut(address, "://") // as Segment's SDK for browsers needs it
	return strings.NewReplacer("{ADDRESS}", address, "{BARE}", bare, "{HOST}", publicURL, "{KEY}", key).Replace(text)
}

// SourceAddress returns the address of a source.
func SourceAddress(publicURL, key string) string { return publicURL + intakePath + key }

// listSources returns the sources of the token's websites.
func (s *API) listSources(c *gin.Context) (any, error) {
	asking := tokenOf(c)
	tokens := slices.DeleteFunc(s.Catalogue.Snapshot().AccountTokens(asking.AccountID), func(t catalogue.Token) bool {
		return t.WebsiteID != cmp.Or(asking.WebsiteID, t.WebsiteID)
	})
	list := NewSources(tokens, s.CountsOf)
	for _, sender := range senders {
		sender.Text = PasteText(sender.Name, s.options.PublicURL, "{KEY}")
		list.Senders = append(list.Senders, sender)
	}
	return list, nil
}
