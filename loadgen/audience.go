package loadgen

import (
	_ "embed"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"

	"lifthouse/schema"
)

// table draws one of its rows by weight.
type table[R any] struct {
	rows   []R
	shares []float64 // add up to 1
	upTo   []float64 // the shares' running sum
}

func newTable[R any](rows []R, weight func(R) float64) table[R] {
	t := table[R]{rows: rows}
	total := 0.0
	for _, row := range rows {
		total += weight(row)
	}
	sum := 0.0
	for _, row := range rows {
		sum += weight(row)
		t.shares = append(t.shares, weight(row)/total)
		t.upTo = append(t.upTo, sum/total)
	}
	return t
}

func (t *table[R]) draw(random *rand.Rand) *R {
	at := sort.SearchFloat64s(t.upTo, random.Float64())
	return &t.rows[min(at, len(t.rows)-1)]
}

// The attributes of visitors. What belongs together is drawn together: a
// device with its system and browser, a country with its regions and cities,
// a channel with its referrers and campaign tags. Groups are independent.

// client is what a visitor looks through.
type client struct {
	device, os, browser string
	weight              float64
}

var clients = newTable([]client{
	{"mobile", "android", "chrome", 30},
	{"mobile", "android", "samsung", 5},
	{"mobile", "android", "firefox", 1},
	{"mobile", "ios", "safari", 20},
	{"mobile", "ios", "chrome", 3},
	{"desktop", "windows", "chrome", 15},
	{"desktop", "windows", "edge", 6},
	{"desktop", "windows", "firefox", 2.5},
	{"desktop", "windows", "opera", 0.5},
	{"desktop", "macos", "safari", 4},
	{"desktop", "macos", "chrome", 4.5},
	{"desktop", "macos", "firefox", 0.5},
	{"desktop", "linux", "chrome", 0.8},
	{"desktop", "linux", "firefox", 0.7},
	{"desktop", "chromeos", "chrome", 0.5},
	{"tablet", "ios", "safari", 3},
	{"tablet", "android", "chrome", 2},
	{"", "", "", 1},
}, func(c client) float64 { return c.weight })

// place is where a visitor is; all empty where that is not known.
type place struct {
	country, region, city string
	weight                float64
}

// placesText is a line a country with its weight, then regions with cities;
// earlier ones are larger.
//
//go:embed places.txt
var placesText string

var places = newTable(parsePlaces(placesText), func(p place) float64 { return p.weight })

func parsePlaces(text string) []place {
	all := []place{{weight: 0.5}}
	for line := range strings.Lines(text) {
		parts := strings.Split(strings.TrimSpace(line), "|")
		country, number, _ := strings.Cut(parts[0], " ")
		weight, err := strconv.ParseFloat(number, 64)
		if err != nil {
			panic(err) // of our own file
		}
		for r, region := range parts[1:] {
			name, cities, _ := strings.Cut(region, ": ")
			list := strings.Split(cities, ", ")
			for c, city := range list {
				all = append(all, place{country, name, city, weight * falling(r, len(parts)-1) * falling(c, len(list))})
			}
		}
	}
	return all
}

// falling is the share of the i-th of n, which go as 1, 1/2, 1/3 and so on.
func falling(i, n int) float64 {
	total := 0.0
	for k := range n {
		total += 1 / float64(k+1)
	}
	return 1 / float64(i+1) / total
}

// source is a channel with what leads through it.
type source struct {
	channel  string
	weight   float64
	referrer string // of most of its visitors; empty: none or one of many
	many     bool   // the others' referrers are those of the long tail
	tags     [][2]string
}

var sources = newTable([]source{
	{channel: "organic", weight: 34, referrer: "https://www.google.com/", many: true},
	{channel: "direct", weight: 22},
	{channel: "paid", weight: 20, referrer: "https://www.google.com/", many: true, tags: [][2]string{{"google", "cpc"}, {"bing", "cpc"}, {"facebook", "paid_social"}}},
	{channel: "email", weight: 10, tags: [][2]string{{"newsletter", "email"}, {"crm", "email"}}},
	{channel: "social", weight: 9, referrer: "https://l.instagram.com/", many: true, tags: [][2]string{{"instagram", "social"}, {"facebook", "social"}, {"tiktok", "social"}}},
	{channel: "referral", weight: 5, many: true},
}, func(s source) float64 { return s.weight })

var visitTypes = newTable([]weighted{{"new", 66}, {"returning", 34}}, func(w weighted) float64 { return float64(w.weight) })

// The sizes of the long tails.
const (
	tailReferrers = 60_000
	tailPages     = 4_000
	tailCampaigns = 60
	tailContents  = 12
	tailTerms     = 800
)

// tail draws 0 to n-1, k with a weight of about 1/(k+1), as sites and search
// words have it.
func tail(random *rand.Rand, n int) int64 {
	return int64(math.Pow(float64(n+1), random.Float64())) - 1
}

func numbered(prefix string, n int64) string { return prefix + strconv.FormatInt(n, 10) }

// drawAttributes makes a new visitor's attributes.
func drawAttributes(random *rand.Rand) schema.Attributes {
	c, p := clients.draw(random), places.draw(random)
	a := schema.Attributes{
		Device: c.device, Browser: c.browser, OS: c.os,
		Country: p.country, Region: p.region, City: p.city,
		VisitorType:    visitTypes.draw(random).value,
		FirstVisitPage: "/",
	}
	if random.Float64() >= 0.25 {
		a.FirstVisitPage = numbered("/products/", tail(random, tailPages))
	}
	drawSource(random, &a)
	return a
}

// drawSource makes where a visit comes from.
func drawSource(random *rand.Rand, a *schema.Attributes) {
	s := sources.draw(random)
	a.Channel, a.Referrer = s.channel, s.referrer
	a.UTMSource, a.UTMMedium, a.UTMCampaign, a.UTMContent, a.UTMTerm = "", "", "", "", ""
	if s.many && (s.referrer == "" || random.Float64() < 0.5) {
		n := tail(random, tailReferrers)
		a.Referrer = "https://site" + strconv.FormatInt(n%9973, 10) + ".example.org/page/" + strconv.FormatInt(n, 10)
	}
	if len(s.tags) == 0 {
		return
	}
	tag := s.tags[tail(random, len(s.tags))]
	a.UTMSource, a.UTMMedium = tag[0], tag[1]
	a.UTMCampaign = numbered("campaign-", tail(random, tailCampaigns))
	a.UTMContent = numbered("creative-", tail(random, tailContents))
	if a.UTMMedium == "cpc" {
		a.UTMTerm = numbered("term ", tail(random, tailTerms))
	}
}

// attributesOf are those that an effect may depend on, and how to read them.
var attributesOf = map[string]func(*schema.Attributes) string{
	"device":      func(a *schema.Attributes) string { return a.Device },
	"os":          func(a *schema.Attributes) string { return a.OS },
	"browser":     func(a *schema.Attributes) string { return a.Browser },
	"country":     func(a *schema.Attributes) string { return a.Country },
	"channel":     func(a *schema.Attributes) string { return a.Channel },
	"visitorType": func(a *schema.Attributes) string { return a.VisitorType },
}

// cell is all visitors who are alike in what effects may depend on.
type cell struct {
	schema.Attributes
	share float64
}

// cells are all of them; their shares add up to 1.
func cells() []cell {
	countries := map[string]float64{}
	for i, p := range places.rows {
		countries[p.country] += places.shares[i]
	}
	var all []cell
	for _, country := range sortedKeys(countries) {
		for i, c := range clients.rows {
			for j, s := range sources.rows {
				for k, t := range visitTypes.rows {
					all = append(all, cell{
						schema.Attributes{Device: c.device, OS: c.os, Browser: c.browser, Country: country, Channel: s.channel, VisitorType: t.value},
						countries[country] * clients.shares[i] * sources.shares[j] * visitTypes.shares[k],
					})
				}
			}
		}
	}
	return all
}

// valuesOf lists what an attribute may be.
func valuesOf(attribute string) []string {
	seen := map[string]bool{}
	for _, c := range cells() {
		seen[attributesOf[attribute](&c.Attributes)] = true
	}
	return sortedKeys(seen)
}

func sortedKeys[V any](of map[string]V) []string {
	keys := make([]string, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
