package query

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"lifthouse/stats"
)

// Outlook asks what experiments of several lengths would find.
type Outlook struct {
	WebsiteID         int64
	CampaignID        int64 // whose rules count; 0: those below
	GoalID            int64 // 0: that of most campaigns
	Metric            Metric
	Traffic           int   // share of all traffic in per cent; 0: not declared
	VisitorsPerDay    int   // of the website; 0: those of the basis
	Shares            []int // in per cent, control first
	Methodology       string
	SignificanceLevel int
	Power             int     // per cent
	MDE               float64 // per cent
}

// OutlookNames are the parameters of an outlook. Only the first two may be given together with a campaign.
var OutlookNames = []string{
	"campaign", "visitorsPerDay",
	"goal", "metric", "traffic", "share", "methodology", "significanceLevel", "power", "mde",
}

// ParseOutlook parses the parameters of an outlook.
func ParseOutlook(rawQuery string) (Outlook, error) {
	p := ReadParameters(rawQuery, OutlookNames...)
	return ReadOutlook(p), p.Err()
}

// ReadOutlook returns the outlook that parameters ask for, without the website.
func ReadOutlook(p *Parameters) Outlook {
	const mostVisitors = 1_000_000_000
	campaign := p.ID("campaign")
	for _, name := range OutlookNames[2:] {
		if given := p.values[name]; campaign != 0 && len(given) > 0 {
			p.addFault(name, strings.Join(given, ", "), "must be omitted with campaign, whose rules count")
		}
	}
	level, _ := strconv.Atoi(cmp.Or(p.OneOf("significanceLevel", []string{"80", "90", "95"}), "95"))
	return Outlook{
		CampaignID:        campaign,
		GoalID:            p.ID(ParamGoal),
		Metric:            Metric(cmp.Or(p.OneOf("metric", Comparable[CampaignResults]), string(GoalConversionRate))),
		Traffic:           p.ParseInteger("traffic", 1, 100, 0),
		VisitorsPerDay:    p.ParseInteger("visitorsPerDay", 1, mostVisitors, 0),
		Shares:            p.parseShares("share"),
		Methodology:       cmp.Or(p.OneOf("methodology", methodologies), methodologies[0]),
		SignificanceLevel: level,
		Power:             p.ParseInteger("power", 60, 99, 80),
		MDE:               p.parseNumber("mde", 1, 100, 20),
	}
}

// methodologies are those of campaigns, the default first.
var methodologies = []string{string(stats.MethodologyFrequentist), string(stats.MethodologyBayesian)}

// parseNumber returns the number in a parameter, or the default if it is absent.
func (p *Parameters) parseNumber(name string, least, most, otherwise float64) float64 {
	text, ok := p.SingleValue(name)
	if !ok {
		return otherwise
	}
	number, ok := parseDecimal(text)
	if !ok || number < least || number > most {
		p.addFault(name, text, fmt.Sprintf("must be a number from %v to %v", least, most))
		return otherwise
	}
	return number
}

// parseShares returns the shares in a repeated parameter, in per cent, or those of two equal variations.
func (p *Parameters) parseShares(name string) []int {
	const percent, most = 100, 20
	given := p.values[name]
	if len(given) == 0 {
		return []int{percent / 2, percent / 2}
	}
	var shares []int
	sum := 0
	for _, text := range given {
		share, err := strconv.Atoi(text)
		isInteger := err == nil && digits.MatchString(text) // Atoi accepts a sign
		if !isInteger || share < 1 || share >= percent {
			p.addFault(name, text, "must be an integer from 1 to 99")
			continue
		}
		shares = append(shares, share)
		sum += share
	}
	if len(shares) < len(given) {
		return shares
	}
	if len(shares) < 2 || len(shares) > most || sum != percent {
		p.addFault(name, strings.Join(given, ", "),
			fmt.Sprintf("must be 2 to %d numbers in percent with the sum 100, control first", most))
	}
	return shares
}
