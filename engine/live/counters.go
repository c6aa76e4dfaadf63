package live

import (
	"context"
	"math/big"

	"lifthouse/engine/plan"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
)

// Counters are the live counters of a campaign. They count all stored events,
// including those that a report excludes. Goals and value are those of the
// primary goal.
type Counters struct {
	Views, GoalsReached, Value int64
}

// WidgetCounters are the live counters of a widget and its experiments. Goals
// and values are those of the primary goal, or of all goals if there is no
// primary goal.
type WidgetCounters struct {
	Views, Clicks, Submits, Completions, Conversions, Contacts int64
	GoalsReached, Value, ExtraValue                            int64
}

// Counters returns the counters of campaigns by id. Campaigns without events
// are absent.
func (t *Totals) Counters(ctx context.Context, campaigns []catalogue.LiveCampaign) (map[int64]Counters, error) {
	primary, websites := make(map[int64]int64, len(campaigns)), map[int64]bool{}
	for _, c := range campaigns {
		primary[c.ID], websites[c.WebsiteID] = c.PrimaryGoalID, true
	}
	counters := map[int64]Counters{}
	return counters, t.counted(ctx, schema.SubjectCampaign, websites, func(row *counter) {
		c := counters[row.subject]
		switch {
		case row.event == schema.KindView:
			c.Views += row.events
		case row.event == schema.KindGoal && row.goal == primary[row.subject]:
			c.GoalsReached, c.Value = row.events, wholeMoney(&row.value)
		}
		counters[row.subject] = c
	})
}

// WidgetCounters returns the counters of widgets by id. Widgets without events
// are absent.
func (t *Totals) WidgetCounters(ctx context.Context, widgets []catalogue.LiveWidget) (map[int64]WidgetCounters, error) {
	primary, websites := make(map[int64]int64, len(widgets)), map[int64]bool{}
	for _, w := range widgets {
		primary[w.ID], websites[w.WebsiteID] = w.PrimaryGoalID, true
	}
	counters, sums := map[int64]WidgetCounters{}, map[int64]*[2]big.Int{}
	err := t.counted(ctx, schema.SubjectWidget, websites, func(row *counter) {
		c := counters[row.subject]
		if row.event == schema.KindGoal && (primary[row.subject] == 0 || row.goal == primary[row.subject]) {
			sum := sums[row.subject]
			if sum == nil {
				sum = &[2]big.Int{}
				sums[row.subject] = sum
			}
			c.GoalsReached += row.events
			c.Value = wholeMoney(sum[0].Add(&sum[0], &row.value))
			c.ExtraValue = wholeMoney(sum[1].Add(&sum[1], &row.extraValue))
		}
		c.add(row)
		counters[row.subject] = c
	})
	return counters, err
}

func (c *WidgetCounters) add(row *counter) {
	switch row.event {
	case schema.KindView:
		c.Views += row.events
	case schema.KindClick:
		c.Clicks += row.events
	case schema.KindSubmit:
		c.Submits += row.events
	case schema.KindCompletion:
		c.Completions += row.events
	case schema.KindConversion:
		c.Conversions += row.events
	case schema.KindContact:
		c.Contacts += row.events
	case schema.KindGoal:
	}
}

// counted calls add for each counter of the subjects of the websites. The
// experiments of a widget have separate counters.
func (t *Totals) counted(ctx context.Context, of schema.Subject, websites map[int64]bool, add func(*counter)) error {
	if len(websites) == 0 {
		return nil
	}
	if err := t.RefreshIfOld(ctx); err != nil {
		return err
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	for website := range websites {
		for _, now := range t.of[collection{website, of}] {
			for i := range now.counters {
				add(&now.counters[i])
			}
		}
	}
	return nil
}

// Goals returns the ids of the goals with stored events of a subject.
func (t *Totals) Goals(ctx context.Context, subject plan.Subject) ([]int64, error) {
	if err := t.RefreshIfOld(ctx); err != nil {
		return nil, err
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	var goals []int64
	if now := t.of[collection{subject.WebsiteID, subject.Kind}][subject]; now != nil {
		for i := range now.counters {
			if c := &now.counters[i]; c.event == schema.KindGoal && c.events > 0 {
				goals = append(goals, c.goal)
			}
		}
	}
	return goals, nil
}

// wholeMoney rounds an amount to an integer, half away from zero.
func wholeMoney(units *big.Int) int64 {
	half := big.NewInt(schema.MoneyScale / 2)
	if units.Sign() < 0 {
		half.Neg(half)
	}
	return new(big.Int).Quo(new(big.Int).Add(units, half), big.NewInt(schema.MoneyScale)).Int64()
}
