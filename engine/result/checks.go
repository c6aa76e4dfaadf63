package result

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/metric"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/wording"
	"lifthouse/stats"
)

// WarningCode identifies a warning.
type WarningCode string

// The codes of the warnings.
const (
	WarningWaiting                 WarningCode = "EVENTS_WAITING"
	warningLost                    WarningCode = "EVENTS_LOST"
	warningUnreadable              WarningCode = "EVENTS_UNREADABLE"
	warningWrongSums               WarningCode = "SUMS_WRONG"
	warningNoEvents                WarningCode = "NO_EVENTS"
	warningSilent                  WarningCode = "SILENT"
	WarningInteraction             WarningCode = "INTERACTION"
	WarningSampleRatio             WarningCode = "SAMPLE_RATIO_MISMATCH"
	warningLeak                    WarningCode = "LEAK"
	WarningMultipleExposures       WarningCode = "MULTIPLE_EXPOSURES"
	WarningMultipleExposuresSkewed WarningCode = "MULTIPLE_EXPOSURES_SKEWED"
	warningAutomated               WarningCode = "AUTOMATED_VISITORS_SKEWED"
	warningUnknownVariations       WarningCode = "UNKNOWN_VARIATIONS"
	warningFewValues               WarningCode = "FEW_VALUES"
	warningNegativeValues          WarningCode = "NEGATIVE_VALUES"
	WarningPlanChanged             WarningCode = "PLAN_CHANGED"
	warningSharesChanged           WarningCode = "SHARES_CHANGED"
	warningEarlyViews              WarningCode = "EARLY_VIEWS"
	WarningDeclaredLate            WarningCode = "DECLARED_LATE"
	warningWindowOpen              WarningCode = "WINDOW_OPEN"
	warningEmptyDays               WarningCode = "DAYS_WITHOUT_VISITORS"
	warningUnseen                  WarningCode = "PURCHASES_WITHOUT_VIEW"
	warningRateUnknown             WarningCode = "RATE_UNKNOWN"
	warningRatesOld                WarningCode = "RATES_OLD"
	warningHistoryShort            WarningCode = "HISTORY_SHORT"
	WarningReturns                 WarningCode = "RETURNS_DIFFER"
	warningDenominatorMoved        WarningCode = "DENOMINATOR_MOVED"
	warningEmptyVariation          WarningCode = "VARIATION_WITHOUT_VISITORS"
)

const (
	// multipleExposuresWarning is the share of multi-exposed visitors above which there is a warning, as in GrowthBook.
	multipleExposuresWarning = 0.01
	// maxUnknown is the maximum number of variations in a check.
	maxUnknown = 50
)

// runChecks checks who is in a slice, what counts, and whether its plan has changed.
func (c *sliceSums) runChecks(p *plan.Plan, found *moments.Rows) Checks {
	checks := Checks{Window: WindowCheck{EarlierVisitors: c.exposedBefore}, Warnings: []Warning{}}
	if found.Through.IsZero() {
		checks.addWarning(warningNoEvents, "no events are stored yet; check that tracking sends this id")
	}
	c.checkVisitors(p, found.Automated, &checks)
	if o := found.Outliers; o != nil && o.Values < 27 { // the maximum distance is (n-1)/sqrt(n)
		checks.addWarning(warningFewValues,
			"%d goal values are too few for a z-score: none can be 5 standard deviations from the mean", o.Values)
	}

	c.checkCap(p, found.Cap, &checks)
	c.checkCurrencies(p, found, &checks)
	c.checkCustomers(p, found, &checks)
	c.checkDenominator(p, &checks)

	// The visitors whose conversion window has not ended.
	if p.ConversionWindow.IsSet() {
		immature := sumOf(maps.Values(c.immature))
		check := &MaturityCheck{ImmatureVisitors: immature, Variations: []ImmatureVariation{}}
		for _, v := range p.Variations {
			check.Variations = append(check.Variations, ImmatureVariation{v.ID, c.immature[v.ID]})
		}
		if immature > 0 && immature == c.visitors {
			first := slices.MaxFunc([]time.Time{found.First, p.Filters.From}, time.Time.Compare)
			check.FirstMature = new(first.Add(p.ConversionWindow.Maturity()))
		}
		checks.ConversionWindow = check
		if 2*immature > c.visitors {
			checks.addWarning(warningWindowOpen,
				"%s of %s visitors do not count yet: their first view is less than %s ago",
				wording.FormatCount(immature), wording.FormatCount(c.visitors), p.ConversionWindow.EndInWords())
		}
	}

	// Changes of the plan.
	if changed := p.Declared.Superseded; len(changed) > 0 {
		checks.addWarning(WarningPlanChanged,
			"the catalogue declares another %s since the first view; results use what was declared before it",
			strings.Join(changed, ", "))
	}
	if n := len(p.SharePeriods); n > 0 && p.SharePeriods[n-1].Since.After(p.WindowStart()) {
		checks.addWarning(warningSharesChanged,
			"the shares changed at %s; comparisons are made within each period of equal shares",
			query.FormatInstant(p.SharePeriods[n-1].Since))
	}
	return checks
}

// checkCap says what the cap removed from the counted visitors.
func (c *sliceSums) checkCap(p *plan.Plan, limited *moments.AppliedCap, checks *Checks) {
	if limited == nil {
		return
	}
	check := &CapCheck{
		Rule: limited.String(), ValueRemoved: Money{Units: new(big.Int)}, Reason: reasonCapNotReached,
	}
	switch checks.Cap = check; {
	case c.unknown > 0:
		check.ValueRemoved.Withheld = true
		check.Reason = stats.ReasonRateUnknown
	case limited.Limit != 0:
		check.Amount = &Money{Units: big.NewInt(limited.Limit)}
		check.Reason = ""
		for _, v := range p.Variations {
			visitors, removed := removedByCap(p, c.counted[v.ID])
			check.Visitors += visitors
			if removed != nil {
				check.ValueRemoved.Units.Add(check.ValueRemoved.Units, removed)
			}
		}
	}
}

// removedByCap returns the visitors whose quantity the cap of a report limits, and how much it removes in
// 1/schema.MoneyScale; nil: nothing.
func removedByCap(p *plan.Plan, of moments.Moments) (visitors int64, removed *big.Int) {
	if p.Expression == nil {
		return of.CappedRemainder.Visitors, of.CappedRemainder.Value.Sum
	}
	if of.Pair.Removed == nil {
		return 0, nil
	}
	units := big.NewInt(metric.Scale / p.Expression.Numerator.Scale())
	return of.Pair.Capped, units.Mul(units, of.Pair.Removed)
}

// checkCurrencies names the currencies of the amounts that are in no sum, and those whose rates are old.
func (c *sliceSums) checkCurrencies(p *plan.Plan, found *moments.Rows, checks *Checks) {
	for _, old := range found.OldRates {
		checks.addWarning(warningRatesOld, "the latest rate of %s is of %s, and an order that it converts of %s: "+
			"import rates each day (lifthouse rates import)", old.Currency, old.Latest.Format(time.DateOnly),
			old.Newest.Format(time.DateOnly))
	}
	if c.unknown == 0 {
		return
	}
	checks.Currencies = &CurrenciesCheck{c.unknown, append([]string{}, found.Foreign...)}
	why := "without a rate to " + p.Currency + " of the 10 days before: import rates (lifthouse rates import)"
	if p.Currency == "" {
		why = "and the website has no currency: declare it"
	}
	checks.addWarning(warningRateUnknown, "%s in %s, %s; value, profit and averages are withheld, and no look at "+
		"them is recorded nor harm to them looked for; conversion rates include these events",
		wording.CountNoun(c.unknown, "goal event")+" with amounts", strings.Join(found.Foreign, ", "), why)
}

// knownBefore is how long before the first view the orders of customers must be known: then an old customer who buys
// each month is not taken for a new one.
const knownBefore = 35 * 24 * time.Hour

// checkCustomers counts the orders that name no visitor and count for one, and warns if it is not known who was a
// customer before the first view.
func (c *sliceSums) checkCustomers(p *plan.Plan, found *moments.Rows, checks *Checks) {
	if len(found.Carried.Of) == 0 {
		return
	}
	check := &CustomersCheck{
		CarriedSums: CarriedSums{Value: Money{Units: new(big.Int), Withheld: c.unknown > 0}},
		Variations:  []CarriedVariation{},
	}
	for _, v := range p.Variations {
		of := found.Carried.Of[v.ID]
		sums := CarriedSums{of.Orders, Money{Units: new(big.Int), Withheld: c.unknown > 0}, of.Revised}
		if of.Value != nil {
			sums.Value.Units.Set(of.Value)
		}
		check.Orders += of.Orders
		check.Revised += of.Revised
		check.Value.Units.Add(check.Value.Units, sums.Value.Units)
		check.Variations = append(check.Variations, CarriedVariation{v.ID, sums})
	}
	checks.Customers = check
	first := found.Carried.FirstHistory
	if check.Orders > 0 && !found.First.IsZero() && first.After(found.First.Add(-knownBefore)) {
		checks.addWarning(warningHistoryShort, "customers are known since %s only, less than 35 days before the first "+
			"view: an old customer may count as won in the test; import the export of orders as customers (lifthouse "+
			"import -m shopify-customers)", query.FormatInstant(first))
	}
}

// checkVisitors checks the variations of the visitors of a slice: their split, and those that should have none or that
// are not declared; who saw several; and who is automated, without filters and windows.
func (c *sliceSums) checkVisitors(p *plan.Plan, automated map[int64]moments.Automated, checks *Checks) {
	checks.Leak, checks.UnknownVariations = []Leak{}, []UnknownVariation{}
	if p.Rules.Compare {
		c.checkSplit(p, checks)
	}
	c.checkMultipleExposures(p, checks)
	checkAutomated(p, automated, checks)
	c.checkUnknownVariations(p, checks)
}

// checkSplit checks the split of the visitors, and looks for variations with visitors that should have none.
func (c *sliceSums) checkSplit(p *plan.Plan, checks *Checks) {
	checks.SampleRatio = c.split.check(p)
	if p.OfAllVisitors() {
		*checks.SampleRatio = checks.SampleRatio.WithSegments()
	}
	for id, arrived := range c.firstViews {
		at := p.IndexOfVariation(id)
		hasShare := at >= 0 && p.ExpectedShares[at] > 0
		if !hasShare && stats.IsLeak(arrived.visitors, c.visitors) {
			checks.Leak = append(checks.Leak, Leak{id, arrived.visitors})
		}
	}
	slices.SortFunc(checks.Leak, func(a, b Leak) int {
		return cmp.Or(cmp.Compare(b.Visitors, a.Visitors), cmp.Compare(a.VariationID, b.VariationID))
	})
	checks.Leak = checks.Leak[:min(len(checks.Leak), maxUnknown)]
	if checks.SampleRatio.Mismatch {
		checks.warnOfMismatch(*checks.SampleRatio.PValue)
	}
	if len(checks.Leak) > 0 {
		checks.addWarning(warningLeak,
			"variations without traffic have visitors; the assignment of visitors may be wrong")
	}
}

// checkMultipleExposures counts who saw several variations, and compares their shares between the variations.
func (c *sliceSums) checkMultipleExposures(p *plan.Plan, checks *Checks) {
	several, visitors := make([]int64, len(p.Variations)), make([]int64, len(p.Variations))
	for i, v := range p.Variations {
		several[i] = c.firstViews[v.ID].multiExposed
		visitors[i] = c.firstViews[v.ID].visitors
	}
	m := MultipleExposures{
		Rule: p.MultipleExposures, Visitors: c.multiExposed, ShareComparison: stats.CompareShares(several, visitors),
	}
	if c.visitors > 0 {
		m.Share = float64(c.multiExposed) / float64(c.visitors)
	}
	m.Warning = m.Share > multipleExposuresWarning || m.Differ
	checks.MultipleExposures = m
	if m.Share > multipleExposuresWarning {
		checks.addWarning(WarningMultipleExposures, "%.1f %% of the visitors were exposed to more than one variation",
			100*m.Share)
	}
	if m.Differ {
		checks.addWarning(WarningMultipleExposuresSkewed,
			"the share of multi-exposed visitors differs between variations (%s)", wording.PValueInWords(*m.PValue))
	}
}

// checkAutomated counts automated visitors, and compares their shares between the variations.
func checkAutomated(p *plan.Plan, automated map[int64]moments.Automated, checks *Checks) {
	bots, all := make([]int64, len(p.Variations)), make([]int64, len(p.Variations))
	a := &Automated{Variations: []AutomatedVariation{}}
	for i, v := range p.Variations {
		bots[i] = automated[v.ID].Visitors
		all[i] = automated[v.ID].Visitors + automated[v.ID].Others
		a.Visitors += bots[i]
		a.Variations = append(a.Variations, AutomatedVariation{v.ID, bots[i]})
	}
	if a.Visitors == 0 {
		return
	}
	a.ShareComparison = stats.CompareShares(bots, all)
	a.Warning = a.Differ
	checks.Automated = a
	if a.Warning {
		checks.addWarning(warningAutomated,
			"the share of automated visitors, who count nowhere, differs between variations (%s): "+
				"a variation may attract or block them", wording.PValueInWords(*a.PValue))
	}
}

// checkUnknownVariations looks for variations with events that are not declared.
func (c *sliceSums) checkUnknownVariations(p *plan.Plan, checks *Checks) {
	for id, of := range c.counted {
		events := of.Views + of.GoalsReached()
		if p.IndexOfVariation(id) < 0 && of.Visitors+events > 0 {
			checks.UnknownVariations = append(checks.UnknownVariations, UnknownVariation{id, of.Visitors, events})
		}
	}
	slices.SortFunc(checks.UnknownVariations, func(a, b UnknownVariation) int {
		return cmp.Or(cmp.Compare(b.Visitors, a.Visitors), cmp.Compare(a.VariationID, b.VariationID))
	})
	checks.UnknownVariations = checks.UnknownVariations[:min(len(checks.UnknownVariations), maxUnknown)]
	if len(checks.UnknownVariations) > 0 {
		checks.addWarning(warningUnknownVariations,
			"events have variation ids that the catalogue does not declare; their visitors are not in the report")
	}
}

func (c *Checks) addWarning(code WarningCode, format string, args ...any) {
	c.Warnings = append(c.Warnings, Warning{code, fmt.Sprintf(format, args...)})
}

func (c *Checks) warnOfMismatch(p float64) {
	c.addWarning(WarningSampleRatio, "sample ratio mismatch: the split of the visitors does not match the configured "+
		"shares (%s); visitors of a variation are lost or added, so no comparison is valid",
		wording.PValueInWords(p))
}

// checkEarlierSplit marks the split as a mismatch if one was found at the end of a day, of all visitors or of a
// segment. p is the smallest p-value at the end of any day; nil: unknown.
func (j *sliceResult) checkEarlierSplit(p *float64) {
	check := j.Checks.SampleRatio
	if check == nil || check.Mismatch {
		return
	}
	if p == nil || *p >= stats.MismatchAlpha { // no mismatch is known
		return
	}
	check.PValue = p
	check.Mismatch = true
	j.Checks.addWarning(WarningSampleRatio,
		"sample ratio mismatch: at the end of a day, the split of all visitors or of a "+
			"segment did not match the configured shares (%s); visitors of a variation were lost or added, so no "+
			"comparison is valid", wording.PValueInWords(*p))
}

// WarnOfNegativeValues warns of events of the goal with values below 0, which were probably sent for refunds.
func (r *Report) WarnOfNegativeValues(events int64) {
	r.Checks.addWarning(warningNegativeValues, "goal events with a value below 0: %s; each counts as a goal: "+
		"send a refund as a revision of its order", wording.FormatCount(events))
}

// WarnOfUnseen warns that nearly all goal events are of visitors without a view of anything.
func (r *Report) WarnOfUnseen(without, all int64) {
	r.Checks.addWarning(warningUnseen, "purchases and other goal events whose visitor has no view: %s of %s; views "+
		"and purchases must carry the same id of the visitor, see lifthouse source add --views",
		wording.FormatCount(without), wording.FormatCount(all))
}

// AddWaiting adds that the report does not include some accepted events yet.
func (r *Report) AddWaiting(waits moments.Waiting) {
	why := "the server is still folding them"
	if waits.Reason == moments.DiskFull {
		why = "the disk of the store is full, so free some space"
	}
	r.Stale = true
	r.Waiting = &waits
	r.Checks.Warnings = slices.DeleteFunc(r.Checks.Warnings, func(w Warning) bool { return w.Code == warningNoEvents })
	if waits.Fold != nil {
		r.Checks.addWarning(WarningWaiting, "this report does not have all events yet: the server is %s",
			FoldInWords(waits.Fold))
		return
	}
	r.Checks.addWarning(WarningWaiting, "%s accepted events are not in this report yet: %s",
		wording.FormatCount(waits.Events), why)
}

// FoldInWords says how far a fold of all events is, such as "folding 3,120,000 of 11,127,301 events, about 2 min left".
func FoldInWords(f *moments.FoldAll) string {
	doing := "folding"
	if f.Rebuild {
		doing = "rebuilding the facts:"
	}
	text := fmt.Sprintf("%s %s of %s", doing, wording.FormatCount(f.Events), wording.CountNoun(f.Of, "event"))
	if f.SecondsLeft == nil {
		return text
	}
	return text + ", about " + wording.ApproximateDuration(time.Duration(*f.SecondsLeft)*time.Second) + " left"
}

// AddDamage adds that the data of the report are lost or damaged.
func (r *Report) AddDamage(d moments.Damage) {
	if d.Lost > 0 {
		r.Checks.addWarning(warningLost, "stored events of %s of the website are lost; the report keeps what it "+
			"counted: restore a backup (lifthouse restore), or send the events again",
			wording.CountNoun(d.Lost, "visitor"))
	}
	if d.Unreadable > 0 {
		r.Checks.addWarning(warningUnreadable, "stored events of %s of the website cannot be read, so what they did "+
			"since is not in this report: find the damage with lifthouse check --deep, and restore a backup",
			wording.CountNoun(d.Unreadable, "visitor"))
	}
	if d.WrongSums {
		r.Checks.addWarning(warningWrongSums, "sums in the facts are not those of the visitors, so the report may be "+
			"wrong: rebuild the facts (lifthouse facts --rebuild)")
	}
}

func sumOf(numbers iter.Seq[int64]) (sum int64) {
	for n := range numbers {
		sum += n
	}
	return sum
}

// InWords describes in words what the cap removed.
func (c *CapCheck) InWords() string {
	if c.ValueRemoved.Withheld {
		return fmt.Sprintf("Cap %s: not applied, because amounts are in a currency without a rate.", c.Rule)
	}
	if c.Amount == nil {
		return fmt.Sprintf("Cap %s: nothing is capped, because fewer than one converted visitor is above it.", c.Rule)
	}
	return fmt.Sprintf("Cap %s: at most %s counts for each visitor; %s visitors have more, %s was removed.", c.Rule,
		c.Amount, wording.FormatCount(c.Visitors), c.ValueRemoved)
}

// InWords says how many orders without a visitor count.
func (c *CustomersCheck) InWords() string {
	text := "Orders without a visitor that belong to customers won in the test: " + wording.FormatCount(c.Orders)
	if c.Orders > 0 && !c.Value.Withheld {
		text += fmt.Sprintf(", with a value of %s", c.Value)
	}
	if c.Revised > 0 {
		text += "; orders that such a row revised: " + wording.FormatCount(c.Revised)
	}
	return text + "."
}

// outliersCheck returns the number of removed goal events and the bounds.
func outliersCheck(o *moments.Outliers, counted int64) *OutliersCheck {
	if o.Open {
		return &OutliersCheck{Reason: reasonNoSpread}
	}
	check := &OutliersCheck{Removed: o.Values - counted, Lower: &o.Lower, Upper: &o.Upper}
	if math.IsInf(o.Lower, 0) {
		check.Lower = nil
		check.Reason = reasonBoundOverflow
	}
	if math.IsInf(o.Upper, 0) {
		check.Upper = nil
		check.Reason = reasonBoundOverflow
	}
	return check
}

// FullWeeks reports whether the full days of a report are whole weeks. Behaviour depends on the day of the week, so
// results of whole weeks are typical.
type FullWeeks struct {
	Days     int  `json:"days"`     // full days in UTC since the first visitor
	Weeks    int  `json:"weeks"`    // full weeks in them
	Complete bool `json:"complete"` // true if the days are whole weeks
}

func newFullWeeks(days int) *FullWeeks {
	const week = 7
	return &FullWeeks{Days: days, Weeks: days / week, Complete: days > 0 && days%week == 0}
}

const (
	// leastExpected is the smallest expected number of visitors of a day, or of a variation on a day, at which a count
	// of 0 is a warning. With 20 expected visitors, the probability of 0 is 2·10⁻⁹ (Poisson).
	leastExpected = 20
	// shownDays is the number of days in a warning.
	shownDays = 5
)

// checkDays warns of full days without visitors between days with many, of variations without visitors on a day, and of
// imported views that are dated long before the others. The report must be about all visitors.
func (j *sliceResult) checkDays(p *plan.Plan, a *looks.Analysis) {
	if first := a.FirstView; first.Imported && first.Start().Sub(first.Time) > 24*time.Hour {
		j.Checks.addWarning(warningEarlyViews,
			"the first views are dated %s, long before the others; the looks count from %s on",
			first.Time.Format(time.DateOnly), first.Start().Format(time.DateOnly))
	}
	if arrived := a.FirstView.Accepted; p.DeclaredAt.After(arrived) && !arrived.IsZero() {
		j.Checks.addWarning(WarningDeclaredLate,
			"declared at %s, after the first view arrived at %s: the plan is honest only if nobody saw outcomes before",
			query.FormatInstant(p.DeclaredAt), query.FormatInstant(arrived))
	}
	if empty := emptyDays(a.Days); len(empty) > 0 {
		j.Checks.addWarning(warningEmptyDays, "no visitors on %s, between days with many; check that tracking worked",
			datesInWords(empty))
	}
	for i, v := range p.Variations {
		if days := daysWithout(p, i, a.Days); len(days) > 0 {
			j.Checks.addWarning(warningEmptyVariation,
				"%s had no visitors on %s, although the other variations had many; check that it was shown", v.Name,
				datesInWords(days))
		}
	}
}

// emptyDays returns the days without visitors between days with many.
func emptyDays(days []looks.DayVisitors) (empty []time.Time) {
	var pending []time.Time // without visitors since the last day with many
	var usual []int64       // visitors of the last seven days with any, whose mean is expected on the next day
	for _, d := range days {
		total := sumOf(maps.Values(d.Visitors))
		hadMany := sumOf(slices.Values(usual)) >= leastExpected*int64(max(len(usual), 1))
		switch {
		case total == 0 && hadMany:
			pending = append(pending, d.Start)
		case total >= leastExpected:
			empty = append(empty, pending...)
			pending = nil
		}
		if total > 0 {
			usual = append(usual[max(len(usual)-6, 0):], total)
		}
	}
	return empty
}

// daysWithout returns the days on which a variation had no visitors, although many were expected. On a day on which the
// shares change, nothing is expected.
func daysWithout(p *plan.Plan, variation int, days []looks.DayVisitors) (without []time.Time) {
	for _, d := range days {
		total := sumOf(maps.Values(d.Visitors))
		from := plan.PeriodAt(p.SharePeriods, d.Start)
		to := plan.PeriodAt(p.SharePeriods, d.Start.AddDate(0, 0, 1))
		expected := p.SharePeriods[from].Shares[variation] * float64(total)
		if from == to && expected >= leastExpected && d.Visitors[p.Variations[variation].ID] == 0 {
			without = append(without, d.Start)
		}
	}
	return without
}

// datesInWords returns the dates of days, and the number of those that it leaves out.
func datesInWords(days []time.Time) string {
	var dates []string
	for _, day := range days[:min(len(days), shownDays)] {
		dates = append(dates, day.Format(time.DateOnly))
	}
	text := strings.Join(dates, ", ")
	if more := len(days) - shownDays; more > 0 {
		text += fmt.Sprintf(" and %d more days", more)
	}
	return text
}

// Pulse has the times of a subject's events, from which it is known at any time whether the subject is silent.
type Pulse struct {
	First, Newest time.Time // views that start the clock, and event
	Views         int64
	IsExpected    bool // events should arrive: the subject runs, and the report has no end
}

// SilenceAt returns how long the subject has been silent at a time, or 0 if it is not silent. It is silent if it has
// had no event for ten times its mean gap, and for at least an hour. A nil pulse is never silent.
func (p *Pulse) SilenceAt(now time.Time) time.Duration {
	if p == nil || p.Views < 2 {
		return 0
	}
	if p.First.IsZero() || p.Newest.IsZero() {
		return 0
	}
	usual := p.Newest.Sub(p.First) / time.Duration(p.Views-1)
	silent := now.Sub(p.Newest)
	if silent < max(10*usual, time.Hour) {
		return 0
	}
	return silent
}

// ChecksAt returns the checks at a time, with a warning if events should arrive and do not.
func (r *Report) ChecksAt(now time.Time) Checks {
	checks := r.Checks
	silent := r.Pulse.SilenceAt(now)
	if silent == 0 || !r.Pulse.IsExpected {
		return checks
	}
	lasting := fmt.Sprintf("%d days", int(silent.Hours()/24))
	if silent < 48*time.Hour {
		lasting = fmt.Sprintf("%d hours", int(silent.Hours()))
	}
	checks.Warnings = slices.Clip(checks.Warnings) // the report may be shared
	checks.addWarning(warningSilent, "no event for %s, although the subject is active; check that tracking still works",
		lasting)
	return checks
}
