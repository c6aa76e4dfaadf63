// Package moments defines the moments of a report, which are exact sums over visitors. It also defines their rows, the
// bounds of outliers, and caps.
package moments

import (
	"cmp"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"lifthouse/schema"
	"lifthouse/stats"
)

// Moments are exact sums over a set of visitors. Every number of a report is computed from them. Money is in
// 1/schema.MoneyScale.
type Moments struct {
	Visitors int64
	Recent   int64 // visitors first exposed in the last plan.RecentDays full days
	Views    int64
	Actions
	Converted       int64 // visitors with at least one counted goal
	Completed       int64 // visitors with at least one completion
	Conversion      int64 // visitors with at least one conversion
	Goals           stats.Sums
	Value           Amounts
	Profit          Amounts
	ExtraValue      Amounts
	ValueGoals      *big.Int        // sum over visitors of value times goals
	Unknown         int64           `json:",omitzero"` // goal events whose amounts are in another currency, and in no sum
	UnknownGoals    bool            `json:",omitzero"` // whether such an event counts depends on its amounts
	CappedRemainder CappedRemainder `json:",omitzero"` // removed by the cap of the report; nil sums: no cap
	FirstAge        stats.Sums      `json:",omitzero"` // of first conversions, in milliseconds; only in a curve by age
	Pair            Pair            `json:",omitzero"` // of the metric of a question that names one
}

// Pair are exact sums over visitors of the quantities x and y of a metric: y is the denominator of a ratio.
type Pair struct {
	X, Y     stats.Sums
	Products *big.Int // of x and y
	Nonzero  int64    // visitors whose x is not 0
	Negative int64    // visitors whose x is below 0
	OfY      int64    // visitors whose y is not 0
	Both     int64    // visitors whose x and y are not 0
	Capped   int64    `json:",omitzero"` // visitors from whose x the cap removed something
	Removed  *big.Int `json:",omitzero"` // by the cap, of all x; nil: there is no cap
}

// Denominator returns the sums of y in the place of x.
func (p *Pair) Denominator() Pair { return Pair{X: p.Y, Nonzero: p.OfY} }

// NoPair returns the sums of no visitors, which the caller may modify.
func NoPair() Pair {
	none := func() stats.Sums { return stats.Sums{Sum: new(big.Int), Squares: new(big.Int)} }
	return Pair{X: none(), Y: none(), Products: new(big.Int), Removed: new(big.Int)}
}

func (p *Pair) combineWith(o *Pair, sign int64) Pair {
	if p.X.Sum == nil && o.X.Sum == nil {
		return Pair{}
	}
	return Pair{
		X: combineSums(p.X, o.X, sign), Y: combineSums(p.Y, o.Y, sign),
		Products: combineSums(stats.Sums{Sum: p.Products}, stats.Sums{Sum: o.Products}, sign).Sum,
		Nonzero:  p.Nonzero + sign*o.Nonzero, Negative: p.Negative + sign*o.Negative, OfY: p.OfY + sign*o.OfY,
		Both: p.Both + sign*o.Both, Capped: p.Capped + sign*o.Capped,
		Removed: combineSums(stats.Sums{Sum: p.Removed}, stats.Sums{Sum: o.Removed}, sign).Sum,
	}
}

// Actions count the events of a widget other than views and goals.
type Actions struct {
	Clicks      int64 `json:"clicks"`
	Submits     int64 `json:"submits"`
	Completions int64 `json:"completions"`
	Conversions int64 `json:"conversions"`
	Contacts    int64 `json:"contacts"`
}

// Amounts are sums over visitors of the visitor's total of a money column.
type Amounts struct {
	stats.Sums
	Nonzero  int64 // visitors whose total is not zero
	Negative int64 // visitors whose total is below zero
}

// Merge returns the moments of the union of two disjoint sets of visitors.
func (m Moments) Merge(o Moments) Moments { return m.combineWith(&o, 1) }

// Subtract returns the moments without those of a subset of the visitors.
func (m Moments) Subtract(o Moments) Moments { return m.combineWith(&o, -1) }

// combineWith returns the sums plus sign times other sums.
func (m *Moments) combineWith(o *Moments, sign int64) Moments {
	sum := Moments{
		Visitors: m.Visitors + sign*o.Visitors,
		Recent:   m.Recent + sign*o.Recent,
		Views:    m.Views + sign*o.Views,
		Actions: Actions{
			Clicks:      m.Clicks + sign*o.Clicks,
			Submits:     m.Submits + sign*o.Submits,
			Completions: m.Completions + sign*o.Completions,
			Conversions: m.Conversions + sign*o.Conversions,
			Contacts:    m.Contacts + sign*o.Contacts,
		},
		Converted:  m.Converted + sign*o.Converted,
		Completed:  m.Completed + sign*o.Completed,
		Conversion: m.Conversion + sign*o.Conversion,
		Goals:      combineSums(m.Goals, o.Goals, sign),
		Value:      m.Value.combineWith(&o.Value, sign),
		Profit:     m.Profit.combineWith(&o.Profit, sign),
		ExtraValue: m.ExtraValue.combineWith(&o.ExtraValue, sign),
		ValueGoals: combineSums(stats.Sums{Sum: m.ValueGoals}, stats.Sums{Sum: o.ValueGoals}, sign).Sum,
		FirstAge:   combineSums(m.FirstAge, o.FirstAge, sign),
		Unknown:    m.Unknown + sign*o.Unknown,
		Pair:       m.Pair.combineWith(&o.Pair, sign),
	}
	if a, b := &m.CappedRemainder, &o.CappedRemainder; a.Value.Sum != nil || b.Value.Sum != nil {
		sum.CappedRemainder = CappedRemainder{
			a.Visitors + sign*b.Visitors, a.Value.combineWith(&b.Value, sign), a.Profit.combineWith(&b.Profit, sign),
		}
	}
	return sum
}

func (a *Amounts) combineWith(o *Amounts, sign int64) Amounts {
	return Amounts{
		Sums: combineSums(a.Sums, o.Sums, sign), Nonzero: a.Nonzero + sign*o.Nonzero,
		Negative: a.Negative + sign*o.Negative,
	}
}

func combineSums(a, b stats.Sums, sign int64) stats.Sums {
	if sign < 0 && b.Sum != nil {
		b.Sum = new(big.Int).Neg(b.Sum)
	}
	if sign < 0 && b.Squares != nil {
		b.Squares = new(big.Int).Neg(b.Squares)
	}
	return a.Merge(b)
}

// NoMoments returns the moments of no visitors, whose sums the caller may modify.
func NoMoments() Moments {
	m := Moments{ValueGoals: new(big.Int)}
	for _, sums := range []*stats.Sums{&m.Goals, &m.Value.Sums, &m.Profit.Sums, &m.ExtraValue.Sums} {
		sums.Sum, sums.Squares = new(big.Int), new(big.Int)
	}
	return m
}

// IsEmpty reports whether there are neither visitors nor events.
func (m *Moments) IsEmpty() bool {
	hasActions := m.Views != 0 || m.Actions != (Actions{})
	hasEvents := hasActions || m.GoalsReached() != 0 || m.Pair.X.Sum != nil
	return m.Visitors == 0 && !hasEvents
}

// GoalsReached returns the number of goal events.
func (m *Moments) GoalsReached() int64 {
	if m.Goals.Sum == nil {
		return 0
	}
	return m.Goals.Sum.Int64()
}

// Kind is the kind of an event, with the values of the column event.
type Kind uint8

// The kinds.
const (
	View Kind = iota + 1
	Click
	Submit
	Completion
	Conversion
	Contact
	Goal
)

// CappedRemainder has what a cap removes from the sums over visitors: the part of each visitor's total value above the
// cap, and the same amount from the visitor's profit.
type CappedRemainder struct {
	Visitors      int64 // with a total value above the cap
	Value, Profit Amounts
}

// WithCappedValues returns the moments with the values and profits of capped visitors. All other sums are unchanged.
func (m Moments) WithCappedValues() Moments {
	if m.CappedRemainder.Visitors != 0 && m.CappedRemainder.Value.Sum != nil {
		m.Value = m.Value.combineWith(&m.CappedRemainder.Value, -1)
		m.Profit = m.Profit.combineWith(&m.CappedRemainder.Profit, -1)
	}
	return m
}

// valueSeparator separates the values of two attributes, which have no control characters.
const valueSeparator = "\x00"

// JoinValues returns the pair of the values of two attributes as one text.
func JoinValues(first, second string) string { return first + valueSeparator + second }

// SplitValues returns the values of the attributes of a dimension.
func SplitValues(text string) []string { return strings.Split(text, valueSeparator) }

// GroupKey identifies a group of visitors.
type GroupKey struct {
	VariationID   int64
	Dimension     string
	Period        int  // index of the period of equal shares of the first view, see plan.Plan.SharePeriods
	ExposedBefore bool // active in the window, but first exposed before it
	MultiExposed  bool // exposed to more than one variation
	Immature      bool // first exposed too late for the conversion window to have ended
}

// GroupMoments holds the sums over one group of visitors.
type GroupMoments struct {
	GroupKey
	Others bool // all values of the dimension that cannot be among the most frequent
	Moments
}

// Step has the sums that one bucket adds to a cumulative report.
type Step struct {
	Bucket int64
	// of multi-exposed visitors: the bucket of the first view of another variation; only in steps of looks
	Crossed int64
	GroupMoments
}

// Rows are the rows of a report and what they include.
type Rows struct {
	Whole    []GroupMoments // the rows of the whole report
	Slices   []GroupMoments // the rows of the breakdown; equal to whole unless they are incomplete
	Everyone []GroupMoments // the rows of all visitors, for a report with filters that is compared with its complement
	Steps    []Step         // sums that each bucket of the series adds; with a z-score, before the removal of outliers
	First    time.Time      // first view, see facts.Stored; zero: no view
	Through  time.Time      // acceptance time of the last event; zero: no events
	Newest   time.Time      // latest event time; zero: no events
	Complete time.Time      // time up to which all events are known
	Outliers *Outliers      // bounds of goal values; nil: no z-score
	Foreign  []string       // currencies of the counted events whose amounts are in no sum
	OldRates []OldRate      // of the currencies of the counted events
	Cap      *AppliedCap    // limit of the total values of visitors; nil: none

	Automated map[int64]Automated // by variation
	Carried   Carried
}

// Split has the parts of a metric with each value of a text. The rows have only the sums Pair.
type Split struct {
	Values []SplitValue // those of most visitors
	Others []GroupMoments
}

// SplitValue has the part of a metric with a value of a text.
type SplitValue struct {
	Value string
	Label string // the latest name of a product
	Rows  []GroupMoments
}

// Carried are the orders that name no visitor, by variation, without filters and window. The zero value has none.
type Carried struct {
	Of           map[int64]CarriedOrders
	FirstHistory time.Time // the first time in the orders of customers
}

// CarriedOrders are the orders of customers that name no visitor and count for a visitor of a variation.
type CarriedOrders struct {
	Orders  int64
	Value   *big.Int // of Orders
	Revised int64    // orders of visitors whose state is that of a row that names none
}

// OldRate is the latest rate of a currency, if it is older than the newest order that it converts by days.
type OldRate struct {
	Currency       string
	Latest, Newest time.Time // day of the rate, and time of the order
}

// Automated counts the automated visitors of a variation, and its others, without filters and window.
type Automated struct{ Visitors, Others int64 }

// LostViews are the goal events of visitors without a view, and these visitors.
type LostViews struct {
	Goals    int64 `json:"goals"`
	Visitors int64 `json:"visitors"`
}

// Waiting are accepted events that no report includes yet.
type Waiting struct {
	Events int64    `json:"events"`
	Reason string   `json:"reason"` // Folding or DiskFull
	Fold   *FoldAll `json:"fold,omitempty"`
}

// FoldAll says how far a fold of all events of a store is.
type FoldAll struct {
	Events      int64  `json:"events"`      // folded ones, copies included
	Of          int64  `json:"of"`          // all
	SecondsLeft *int64 `json:"secondsLeft"` // null: not known yet
	Rebuild     bool   `json:"rebuild"`     // the facts are rebuilt; reports read the present ones until that is complete
}

// Damage says which stored data of a website or a subject are lost or cannot be read.
type Damage struct {
	Lost       int  // visitors of the website with fewer stored events than their facts were made of
	Unreadable int  // visitors of the website some of whose events cannot be read
	WrongSums  bool // sums in the facts of the subject are not those of its visitors
}

// Reasons why events wait.
const (
	Folding  = "folding"
	DiskFull = "full"
)

// MatureVisitors returns the visitors that a report with a conversion window shows: none of a row of immature ones.
func (r *GroupMoments) MatureVisitors() int64 {
	if r.Immature {
		return 0
	}
	return r.Visitors
}

// MostVisited returns the values sorted by visitors, descending.
func MostVisited(visitors map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(visitors), func(a, b string) int {
		return cmp.Or(cmp.Compare(visitors[b], visitors[a]), cmp.Compare(a, b))
	})
}

// AppliedCap is the limit of the total value of each visitor of a report.
type AppliedCap struct {
	schema.Cap
	Limit int64 // in 1/schema.MoneyScale; 0: nothing is capped, because the percentile is not reached
}

// NewCap returns the cap of a report. totals has the total values of the converted visitors; NewCap sorts it. A
// percentile is the value at the nearest rank. It is not reached if fewer than one visitor is above it, or if it is not
// above 0.
func NewCap(rule schema.Cap, totals []int64) *AppliedCap {
	c := &AppliedCap{Cap: rule, Limit: rule.Units}
	const thousand = 1000 // percentiles have one decimal
	above := len(totals) * (thousand - int(math.Round(10*rule.Percentile))) / thousand
	if rule.Percentile == 0 || above == 0 {
		return c
	}
	slices.Sort(totals)
	c.Limit = max(totals[len(totals)-above-1], 0)
	return c
}

// Outliers are the bounds of the goal values that count. They follow from the z-score of the whole report.
type Outliers struct {
	Values       int64   // goal events before removal
	Lower, Upper float64 // in the sender's unit, inclusive; infinite if a float64 overflows
	Least, Most  int64   // the same in 1/schema.MoneyScale, rounded inwards
	Open         bool    // fewer than two values or no deviation: nothing is removed
}

// NewOutliers returns the bounds mean ± z·sd of n values with sum s and sum of squares ss; sd is the standard deviation
// with n-1. A value v counts if
//
//	(n v - s)² (n - 1) <= z² n (n ss - s²)
//
// which is evaluated in exact arithmetic.
func NewOutliers(n int64, s, ss *big.Int, z float64) *Outliers {
	o := &Outliers{Values: n}
	count := big.NewInt(n)
	spread := new(big.Int).Mul(count, ss)
	spread.Sub(spread, new(big.Int).Mul(s, s))
	if n < 2 || spread.Sign() <= 0 {
		o.Open = true
		return o
	}
	limit := new(big.Rat).SetFloat64(z)
	limit.Mul(limit, limit).Mul(limit, new(big.Rat).SetInt(new(big.Int).Mul(count, spread)))
	counts := func(v *big.Int) bool {
		d := new(big.Int).Mul(count, v)
		d.Sub(d, s)
		d.Mul(d, d).Mul(d, big.NewInt(n-1))
		return new(big.Rat).SetInt(d).Cmp(limit) <= 0
	}
	mean := new(big.Float).SetPrec(256).SetInt(s)
	mean.Quo(mean, new(big.Float).SetInt(count))
	width := new(big.Float).SetPrec(256).SetInt(spread)
	width.Quo(width, new(big.Float).SetInt(new(big.Int).Mul(count, big.NewInt(n-1))))
	width.Sqrt(width).Mul(width, big.NewFloat(z))
	low := new(big.Float).Sub(mean, width)
	high := new(big.Float).Add(mean, width)
	o.Lower, o.Upper = inUnits(low), inUnits(high)
	o.Least, o.Most = outermostInteger(low, counts, 1), outermostInteger(high, counts, -1)
	return o
}

func inUnits(x *big.Float) float64 {
	unit, _ := new(big.Float).Quo(x, big.NewFloat(schema.MoneyScale)).Float64()
	return unit
}

// outermostInteger returns the outermost integer near the bound that counts. It searches inwards by step, from the
// largest possible amount if the bound is beyond it. If there is no integer between the bounds, it returns one beyond
// the opposite bound, which makes the range empty.
func outermostInteger(bound *big.Float, counts func(*big.Int) bool, step int64) int64 {
	const most = schema.MaxMoney * schema.MoneyScale
	v, _ := bound.Int(nil)
	if v.Cmp(big.NewInt(most)) > 0 || v.Cmp(big.NewInt(-most)) < 0 {
		return -step * most
	}
	near := v.Int64() - 2*step
	for range 4 {
		if counts(big.NewInt(near)) {
			return near
		}
		near += step
	}
	return near
}
