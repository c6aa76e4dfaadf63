package looks

import (
	"slices"
	"time"

	"lifthouse/engine/metric"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/stats"
)

// Returns says that orders were cancelled or revised downwards at different ages in control and a treatment. From then
// on, looks wait until their orders have settled.
type Returns struct {
	Look        int   // number of the look at whose time the difference was found
	VariationID int64 // the treatment with the smallest p-value
	PValue      float64
	IsLater     bool          // its orders change later, or less, than those of control; otherwise earlier, or more
	Settle      time.Duration // after which orders have settled
}

const (
	// returnsAlarm is the p-value below which the ages at which orders change are taken to differ.
	returnsAlarm = 0.001
	// LeastSettle is the least time in which orders are taken to settle after an alarm. It is soon after the start,
	// when the later changes of one variation cannot have been seen yet.
	LeastSettle = 30 * day
	// MostSettle is the longest such time.
	MostSettle = 180 * day
)

// CompareReturns compares the lifetimes of the orders of a look by treatment, which has them for each treatment and
// control. It returns nil if no p-value, times the number of treatments and the number of the look, is below .001. So
// the probability of an alarm without a difference is below .002 in simulations with a look each week of a year.
func CompareReturns(l Look, p *plan.Plan, lifetimes [][]stats.Lifetime) *Returns {
	var found *Returns
	for t, all := range lifetimes {
		test := stats.CompareLifetimes(all)
		if test.PValue == nil {
			continue
		}
		adjusted := min(1, *test.PValue*float64(len(lifetimes)*l.Number))
		if adjusted < returnsAlarm && (found == nil || adjusted < found.PValue) {
			found = &Returns{
				Look: l.Number, VariationID: p.Variations[t+1].ID, PValue: adjusted, IsLater: test.Later(),
			}
		}
	}
	return found
}

// SettleAfter sets the time after which orders have settled: that by which most changes of the website's orders of this
// goal have come, but at least LeastSettle.
func (r *Returns) SettleAfter(known time.Duration) {
	r.Settle = min(max(known, LeastSettle), MostSettle)
}

// NewReturnsRecord returns the row of returns that were found for a question of the plan of a declared question.
func NewReturnsRecord(declared, question *plan.Plan, s *Schedule, l Look, found *Returns) Record {
	row := LookRow{Look: Look{End: l.End}, Kind: OfReturns, Returns: found, FirstDay: s.days[0].From}
	return Record{DeclarationOf(declared), question.Measure(), question.Metric, row}
}

// returnsOf returns the recorded returns of a question; nil: none.
func returnsOf(p *plan.Plan, recorded []Record) *Returns {
	for _, r := range recorded {
		if r.Kind == OfReturns && r.isAbout(p) {
			return r.Returns
		}
	}
	return nil
}

func withoutReturns(recorded []Record) []Record {
	return slices.DeleteFunc(slices.Clone(recorded), func(r Record) bool { return r.Kind == OfReturns })
}

// questionsWithRole returns the plans of the primary question, the guardrails, and the secondary goals.
func questionsWithRole(p *plan.Plan) []*plan.Plan {
	all := questionsOf(p)
	for _, g := range p.Declared.Secondary {
		all = append(all, p.AboutMeasure(g.Measure).WithMetric(g.Metric))
	}
	return all
}

// countsGoals reports whether the metric of a question is made of the events of goals, which have revisions.
func countsGoals(p *plan.Plan) bool {
	return p.Expression != nil || slices.Contains(query.GoalMetrics, p.Metric)
}

// LifetimeAmount returns the index of the amount of an order that a metric sums; -1: orders count as one. An order of
// which a metric sums the lines has its whole value.
func LifetimeAmount(of query.Metric) int {
	if m := of.Expression(); m != nil {
		return amountOfField(&m.Numerator.Field)
	}
	switch of {
	case query.ValuePerVisitor, query.AverageValue:
		return 0
	case query.ProfitPerVisitor:
		return 1
	default:
		return -1
	}
}

// amountOfField returns the index of the amount of an order that a field is of; -1: of none.
func amountOfField(f *metric.Field) int {
	switch {
	case !f.IsAmount():
		return -1
	case f.Name == "profit" || f.Name == "items.profit":
		return 1
	default:
		return 0
	}
}

// DueReturns is a question whose returns must be compared: a look at it is due.
type DueReturns struct {
	Plan *plan.Plan
	Look Look
	From time.Time // start of the first full day
}

// DueReturns returns the questions about goals at which a look is due and whose returns did not differ so far. Looks
// that ended before the first view was accepted are of imported data, and their orders have no known past.
func (s *Schedule) DueReturns(declared *plan.Plan, recorded []Record) (due []DueReturns) {
	questions := questionsWithRole(declared)
	decided := len(questionsOf(declared))
	isPrimaryDue := false
	for i, p := range questions {
		about := s.about(p, recorded)
		if len(about.Looks) == 0 || returnsOf(p, recorded) != nil || !countsGoals(p) {
			continue
		}
		last := about.Looks[len(about.Looks)-1]
		isDue := isPrimaryDue // no look at a secondary goal is recorded
		if i < decided {
			isDue = last.End.After(s.FirstView.Accepted) && !slices.ContainsFunc(recorded, func(r Record) bool {
				return r.isAbout(p) && r.Kind == OfLook && r.Number == last.Number
			})
			isPrimaryDue = isPrimaryDue || isDue
		}
		if isDue {
			due = append(due, DueReturns{p, last, s.days[0].From})
		}
	}
	return due
}

// returnsOfAll returns the recorded returns of the questions with a role.
func (s *Schedule) returnsOfAll(p *plan.Plan, recorded []Record) (found []ReturnsOf) {
	for _, question := range questionsWithRole(p) {
		r := returnsOf(question, recorded)
		if r == nil {
			continue
		}
		about := s.about(question, recorded)
		of := ReturnsOf{Plan: question, Returns: r, IsWaiting: len(about.Looks) < r.Look}
		if !about.Next.IsZero() {
			of.Published = about.Next.Add(about.Maturity())
		}
		found = append(found, of)
	}
	return found
}
