package engine

import (
	"context"
	"strconv"
	"time"

	"lifthouse/engine/cache"
	"lifthouse/engine/facts"
	"lifthouse/engine/fold"
	"lifthouse/engine/metric"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/result"
)

// addEvidence adds the parts of a metric that is split. To the comparisons that have no looks, it adds how strong their
// evidence is, and how strong it must be for a question of this kind to hold.
func (e *Engine) addEvidence(ctx context.Context, p *plan.Plan, rows *moments.Rows, report *result.Report) error {
	var price *result.Price
	if p.Rules.Compare && len(p.Variations) > 1 && result.HasEvidence(p) {
		ranks, err := e.readRanks(ctx, p, rows.Through)
		if err != nil {
			return err
		}
		counters := e.facts.SubjectCounters(p.Subject)
		price = result.NewPrice(p, rows, fold.TimeOf(counters.FirstView), ranks)
		report.AddEvidence(p, rows, price)
	}
	if p.Split == nil {
		return nil
	}
	split, err := e.facts.ReadSplit(ctx, p.Question)
	if err != nil {
		return err
	}
	report.AddParts(p, rows, split, price)
	return nil
}

// appearancesOf is the key of the order in which values, or goals, first appeared in a subject.
type appearancesOf struct {
	subject any
	of      facts.Appearing
}

// readRanks returns the orders of first appearance that the price of a question needs. They are those of the last
// midnight (UTC), so that they are read once a day, and the same on all servers but for events that arrive late. What
// appears later has no rank yet, and no evidence.
func (e *Engine) readRanks(ctx context.Context, p *plan.Plan, through time.Time) (*metric.Ranks, error) {
	midnight := through.UTC().Truncate(24 * time.Hour)
	read := func(of facts.Appearing) ([]string, error) {
		return cache.ValueAt(e.cache, appearancesOf{p.Subject, of}, midnight, func() ([]string, int64, error) {
			values, err := e.facts.ReadAppearances(ctx, p.Question, of, midnight)
			bytes := int64(0)
			for _, value := range values {
				bytes += int64(len(value)) + 16
			}
			return values, bytes, err
		})
	}
	ranks := &metric.Ranks{
		Goals: map[int64]int{}, Properties: map[string]int{}, Attributes: map[string]int{},
		Values: map[metric.Field]map[string]int{},
	}
	goals, err := read(facts.Appearing{})
	if err != nil {
		return nil, err
	}
	for i, text := range goals {
		id, _ := strconv.ParseInt(text, 10, 64) // it was formatted
		ranks.Goals[id] = i + 1
	}
	ranks.Metrics = result.NamedMetrics(p, goals)
	ranks.Declared = result.DeclaredQuestions(p)
	for _, field := range result.TextsOf(p) {
		values, err := read(facts.Appearing{Text: field})
		if err != nil {
			return nil, err
		}
		ranks.Values[field] = map[string]int{}
		for i, value := range values {
			ranks.Values[field][value] = i + 1
		}
	}
	if names := p.Asked.Names; names != nil { // in the order in which they were first sent
		for i, property := range names.Properties {
			ranks.Properties[property.Name] = i + 1
		}
		for i, attribute := range names.Attributes {
			ranks.Attributes[attribute] = i + 1
		}
	}
	return ranks, nil
}
