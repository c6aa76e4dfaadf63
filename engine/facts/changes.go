package facts

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"lifthouse/engine/books"
	"lifthouse/engine/fold"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/schema"
	"lifthouse/stats"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// OrderState is what an order was when one of its revisions arrived.
type OrderState struct {
	Accepted int64 // in milliseconds since 1970
	Revision uint64
	Bare     bool // it belongs to no subject
	Amounts  [3]int64
	IsGone   bool // it was cancelled
}

// Order of the states: the state of an order is that of the highest revision, then that of the subject, then the one
// that arrived first, as in package fold.
func (s *OrderState) isAfter(o *OrderState) bool {
	if s.Revision != o.Revision {
		return s.Revision > o.Revision
	}
	return o.Bare && !s.Bare
}

// OrderHistory is an order of a subject with its states, in the order in which they arrived.
type OrderHistory struct {
	Variation    int64
	MultiExposed bool
	Ordered      int64 // time of the order, in milliseconds since 1970
	States       []OrderState
}

// LifetimeOf returns how long the order stayed as it was, up to a time in milliseconds since 1970. amount is the index
// of the amount that is weighed; below 0, the order counts as one until it is cancelled. It returns false if the order
// had no amount.
func (h *OrderHistory) LifetimeOf(amount int, through int64) (stats.Lifetime, bool) {
	const hour = float64(time.Hour / time.Millisecond)
	worth := func(s *OrderState) float64 {
		switch {
		case s.IsGone:
			return 0
		case amount < 0:
			return 1
		}
		return float64(max(s.Amounts[amount], 0))
	}
	l := stats.Lifetime{Age: float64(through-h.Ordered) / hour, Amount: worth(&h.States[0])}
	if amount < 0 {
		l.Amount = 1 // also of an order that arrived cancelled
	}
	now := &h.States[0]
	changed := int64(0)
	for i := range h.States {
		if s := &h.States[i]; i > 0 && s.isAfter(now) {
			now = s
		}
		if changed == 0 && worth(now) < l.Amount {
			changed = h.States[i].Accepted
		}
	}
	if left := worth(now); left < l.Amount {
		l.Removed, l.Age = l.Amount-left, float64(max(changed-h.Ordered, 0))/hour
	}
	return l, l.Amount > 0 && l.Age >= 0
}

// EachOrderHistory calls each for the orders of the goals of a question before the end of its window, of the counted
// visitors first exposed in it, with the revisions that were accepted up to a time. It reads the events.
func (s Shards) EachOrderHistory(
	ctx context.Context, q *plan.Question, through time.Time, each func(*OrderHistory),
) error {
	of := q.Subject
	book := s.Books()[of.WebsiteID]
	return s.eachServer(ctx, inFile("lifetimes.sql"), func(row driver.Rows) error {
		var h OrderHistory
		var variation string
		var accepted, value, profit, extra []int64
		var revisions []uint64
		var bare, cancelled []uint8
		var currencies []string
		if err := row.Scan(&variation, &h.Ordered, &accepted, &revisions, &bare, &cancelled, &value, &profit,
			&extra, &currencies); err != nil {
			return err
		}
		variation, h.MultiExposed = strings.CutSuffix(variation, fold.MultiExposed)
		id, err := strconv.ParseInt(variation, 10, 64)
		if err != nil {
			return fmt.Errorf("facts: variation %q: %w", variation, err)
		}
		h.Variation = id
		for i := range accepted {
			amounts := [3]int64{value[i], profit[i], extra[i]}
			h.States = append(h.States, OrderState{
				accepted[i], revisions[i], bare[i] != 0, convertAmounts(book, currencies[i], h.Ordered, amounts),
				cancelled[i] != 0,
			})
		}
		each(&h)
		return nil
	}, sectionParam{"visitors", of, fold.OfVisitor}, clickhouse.Named("website_id", of.WebsiteID),
		clickhouse.Named("subject", string(of.Kind)), clickhouse.Named("subject_id", of.ID),
		clickhouse.Named("experiment_id", of.ExperimentID), clickhouse.Named("goals", q.GoalIDs()),
		clickhouse.Named("from_ms", q.WindowStart().UnixMilli()), clickhouse.Named("to_ms", q.WindowEnd().UnixMilli()),
		clickhouse.Named("age_from_ms", q.ConversionWindow.From.Milliseconds()),
		clickhouse.Named("age_to_ms", q.ConversionWindow.To.Milliseconds()),
		clickhouse.Named("through_ms", through.UnixMilli()))
}

// convertAmounts returns amounts in the currency of the website, as the fold does; 0: they are not known, and then no
// look at amounts is recorded.
func convertAmounts(book *books.Book, currency string, at int64, amounts [3]int64) [3]int64 {
	e := fold.Event{Kind: moments.Goal, At: at, Amounts: amounts}
	e.SetDetails("", &schema.Details{Currency: currency}, book)
	x := fold.Explained{Event: &e, At: at}
	return x.Worth().Amounts
}

// changesPeriod is the period of the orders whose changes say how long orders change.
const changesPeriod = 180 * 24 * time.Hour

// OrderChanges says how long the orders of a goal change: those of the last 180 days that arrived within a day of their
// time, so not those of an import.
type OrderChanges struct {
	Orders    int64
	Revisions int64 // that arrived after the order
	byHour    map[int]int64
}

// leastChanges is the number of revisions from which it is known how long orders change.
const leastChanges = 20

// AgeOf returns the age, in whole days, by which a share of the revisions had arrived. It returns false if there are
// fewer than 20 revisions.
func (c *OrderChanges) AgeOf(share float64) (time.Duration, bool) {
	if c.Revisions < leastChanges {
		return 0, false
	}
	var ages []int
	for hours := range c.byHour {
		ages = append(ages, hours)
	}
	slices.Sort(ages)
	so := int64(0)
	for _, hours := range ages {
		so += c.byHour[hours]
		if float64(so) >= share*float64(c.Revisions) {
			const day = 24
			return time.Duration((hours+day-1)/day) * day * time.Hour, true
		}
	}
	return 0, false
}

// The shares of the revisions after which orders have settled, or nearly.
const (
	nearlySettled = 0.95
	Settled       = 0.99
)

// SettleTexts returns the ages by which 95 and 99 % of the revisions had arrived, as settle of a goal is written;
// empty: there are too few revisions.
func (c *OrderChanges) SettleTexts() (most, all string) {
	text := func(share float64) string {
		age, known := c.AgeOf(share)
		if !known {
			return ""
		}
		return fmt.Sprintf("%dd", age/(24*time.Hour))
	}
	return text(nearlySettled), text(Settled)
}

// InWords says how long the orders of a goal with a name change.
func (c *OrderChanges) InWords(goal string) string {
	most, all := c.SettleTexts()
	if most == "" {
		return fmt.Sprintf("Orders of %s changed %d times in 180 days: too few to say for how long.", goal, c.Revisions)
	}
	return fmt.Sprintf("Orders of %s change: %d revisions of %d orders in 180 days. 95 %% had come after %s, and "+
		"99 %% after %s: settle: %s or settle: %s of the goal makes looks wait for them.", goal, c.Revisions, c.Orders,
		most, all, most, all)
}

// ReadOrderChanges reads how long the orders of a website change, by goal, from the events accepted up to a time. Goal
// 0 has all goals.
func (s Shards) ReadOrderChanges(
	ctx context.Context, website int64, through time.Time,
) (map[int64]*OrderChanges, error) {
	found := map[int64]*OrderChanges{}
	err := s.eachServer(ctx, inFile("changes.sql"), func(row driver.Rows) error {
		var goal, n int64
		var hours uint32
		if err := row.Scan(&goal, &hours, &n); err != nil {
			return err
		}
		for _, id := range []int64{0, goal} {
			of := found[id]
			if of == nil {
				of = &OrderChanges{byHour: map[int]int64{}}
				found[id] = of
			}
			if hours == 0 {
				of.Orders += n
				continue
			}
			of.Revisions += n
			of.byHour[int(hours)] += n
		}
		return nil
	}, clickhouse.Named("website_id", website), clickhouse.Named("through_ms", through.UnixMilli()),
		clickhouse.Named("from_ms", schema.LaterTime(through.Add(-changesPeriod), plan.OpenFrom).UnixMilli()))
	return found, err
}
