package population

import (
	_ "embed"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"lifthouse/schema"
)

// Visitor attributes are drawn in groups: a device with its operating system
// and browser, a country with a region and a city, and a channel with a
// referrer and campaign tags. The groups are independent of each other.

// client is a combination of device, operating system and browser.
type client struct {
	device, os, browser string
	weight              float64
}

var clients = newWeightedTable([]client{
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

// place is the location of a visitor. All fields are empty if the location is
// unknown.
type place struct {
	country, region, city string
	weight                float64
}

// placesText has one line per country: the country with its weight, then its
// regions with their cities. Larger regions and cities come first.
//
//go:embed places.txt
var placesText string

var places = newWeightedTable(parsePlaces(placesText), func(p place) float64 { return p.weight })

func parsePlaces(text string) []place {
	all := []place{{weight: 0.5}}
	for line := range strings.Lines(text) {
		parts := strings.Split(strings.TrimSpace(line), "|")
		country, number, _ := strings.Cut(parts[0], " ")
		weight, err := strconv.ParseFloat(number, 64)
		if err != nil {
			panic("places.txt: " + err.Error())
		}
		for r, region := range parts[1:] {
			name, cities, _ := strings.Cut(region, ": ")
			list := strings.Split(cities, ", ")
			for c, city := range list {
				all = append(all, place{country, name, city, weight * harmonicShare(r, len(parts)-1) * harmonicShare(c, len(list))})
			}
		}
	}
	return all
}

// source is a marketing channel with its referrers and campaign tags.
type source struct {
	channel  string
	weight   float64
	referrer string      // most frequent referrer; empty: none
	longTail bool        // some or all visitors have a rare referrer
	tags     [][2]string // utm_source and utm_medium
}

var sources = newWeightedTable([]source{
	{channel: "organic", weight: 34, referrer: "https://www.google.com/", longTail: true},
	{channel: "direct", weight: 22},
	{channel: "paid", weight: 20, referrer: "https://www.google.com/", longTail: true, tags: [][2]string{{"google", "cpc"}, {"bing", "cpc"}, {"facebook", "paid_social"}}},
	{channel: "email", weight: 10, tags: [][2]string{{"newsletter", "email"}, {"crm", "email"}}},
	{channel: "social", weight: 9, referrer: "https://l.instagram.com/", longTail: true, tags: [][2]string{{"instagram", "social"}, {"facebook", "social"}, {"tiktok", "social"}}},
	{channel: "referral", weight: 5, longTail: true},
}, func(s source) float64 { return s.weight })

var visitorTypes = newWeightedTable([]weightedValue{{"new", 66}, {"returning", 34}}, func(v weightedValue) float64 { return float64(v.weight) })

// Numbers of distinct values of the attributes with a long tail.
const (
	distinctReferrers = 60_000
	distinctPages     = 4_000
	distinctCampaigns = 60
	distinctContents  = 12
	distinctTerms     = 800
)

func numberedName(prefix string, n int64) string { return prefix + strconv.FormatInt(n, 10) }

// drawAttributes draws the attributes of a new visitor.
func drawAttributes(random *rand.Rand) schema.Attributes {
	c := clients.drawRow(random)
	p := places.drawRow(random)
	a := schema.Attributes{
		Device: c.device, Browser: c.browser, OS: c.os,
		Country: p.country, Region: p.region, City: p.city,
		VisitorType:    visitorTypes.drawRow(random).value,
		FirstVisitPage: "/",
	}
	if random.Float64() >= 0.25 {
		a.FirstVisitPage = numberedName("/products/", drawZipf(random, distinctPages))
	}
	drawSource(random, &a)
	return a
}

// drawSource replaces the channel, the referrer and the campaign tags.
func drawSource(random *rand.Rand, a *schema.Attributes) {
	s := sources.drawRow(random)
	a.Channel = s.channel
	a.Referrer = s.referrer
	a.UTMSource = ""
	a.UTMMedium = ""
	a.UTMCampaign = ""
	a.UTMContent = ""
	a.UTMTerm = ""
	if s.longTail && (s.referrer == "" || random.Float64() < 0.5) {
		n := drawZipf(random, distinctReferrers)
		a.Referrer = "https://site" + strconv.FormatInt(n%9973, 10) + ".example.org/page/" + strconv.FormatInt(n, 10)
	}
	if len(s.tags) == 0 {
		return
	}
	tag := s.tags[drawZipf(random, len(s.tags))]
	a.UTMSource = tag[0]
	a.UTMMedium = tag[1]
	a.UTMCampaign = numberedName("campaign-", drawZipf(random, distinctCampaigns))
	a.UTMContent = numberedName("creative-", drawZipf(random, distinctContents))
	if a.UTMMedium == "cpc" {
		a.UTMTerm = numberedName("term ", drawZipf(random, distinctTerms))
	}
}

// effectAttributes maps the name of each attribute that effects may depend on
// to a function that reads the attribute.
var effectAttributes = map[string]func(*schema.Attributes) string{
	"device":      func(a *schema.Attributes) string { return a.Device },
	"os":          func(a *schema.Attributes) string { return a.OS },
	"browser":     func(a *schema.Attributes) string { return a.Browser },
	"country":     func(a *schema.Attributes) string { return a.Country },
	"channel":     func(a *schema.Attributes) string { return a.Channel },
	"visitorType": func(a *schema.Attributes) string { return a.VisitorType },
}

// stratum is the set of visitors with the same values of all effect
// attributes.
type stratum struct {
	schema.Attributes
	share float64 // of all visitors
}

// allStrata returns all strata. Their shares add up to 1.
func allStrata() []stratum {
	countries := map[string]float64{}
	for i, p := range places.rows {
		countries[p.country] += places.shares[i]
	}
	var all []stratum
	for _, country := range slices.Sorted(maps.Keys(countries)) {
		for i, c := range clients.rows {
			for j, s := range sources.rows {
				for k, t := range visitorTypes.rows {
					all = append(all, stratum{
						schema.Attributes{Device: c.device, OS: c.os, Browser: c.browser, Country: country, Channel: s.channel, VisitorType: t.value},
						countries[country] * clients.shares[i] * sources.shares[j] * visitorTypes.shares[k],
					})
				}
			}
		}
	}
	return all
}

// attributeValues returns the possible values of an effect attribute, sorted.
func attributeValues(attribute string) []string {
	values := map[string]bool{}
	for _, s := range allStrata() {
		values[effectAttributes[attribute](&s.Attributes)] = true
	}
	return slices.Sorted(maps.Keys(values))
}
