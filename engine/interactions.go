package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"lifthouse/engine/facts"
	"lifthouse/engine/interaction"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/daily"

	"github.com/cespare/xxhash/v2"
)

// keptInteractions are the interactions of subjects, as they were last measured.
type keptInteractions struct {
	mu       sync.RWMutex // guards the following
	of       map[schema.Subject][]result.Interaction
	versions map[schema.Subject]uint64 // of the interactions of each subject
	changed  map[schema.Subject]time.Time
	texts    map[int64]string // by website, as they are stored
}

// newKeptInteractions returns no interactions.
func newKeptInteractions() keptInteractions {
	return keptInteractions{
		of: map[schema.Subject][]result.Interaction{}, versions: map[schema.Subject]uint64{},
		changed: map[schema.Subject]time.Time{}, texts: map[int64]string{},
	}
}

// ofSubject returns the interactions of a subject.
func (k *keptInteractions) ofSubject(subject schema.Subject) []result.Interaction {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.of[subject]
}

// versionOf returns a number that changes with the interactions of a subject; 0: it has none.
func (k *keptInteractions) versionOf(subject schema.Subject) uint64 {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.versions[subject]
}

// changedAt returns when the interactions of a subject last changed in this process; zero: never.
func (k *keptInteractions) changedAt(subject schema.Subject) time.Time {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.changed[subject]
}

// ofWebsite returns the interactions of the subjects of a website.
func (k *keptInteractions) ofWebsite(website int64) map[schema.Subject][]result.Interaction {
	k.mu.RLock()
	defer k.mu.RUnlock()
	found := map[schema.Subject][]result.Interaction{}
	for subject, list := range k.of {
		if subject.WebsiteID == website {
			found[subject] = list
		}
	}
	return found
}

// isOf reports whether the interactions of a website are those of a stored text.
func (k *keptInteractions) isOf(website int64, text string) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.texts[website] == text
}

// replaceOfWebsite replaces the interactions of the subjects of a website. text has them as they are stored.
func (k *keptInteractions) replaceOfWebsite(
	website int64, text string, found map[schema.Subject][]result.Interaction,
) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.texts[website] = text
	before := map[schema.Subject]uint64{}
	for subject := range k.of {
		if subject.WebsiteID == website {
			before[subject] = k.versions[subject]
			delete(k.of, subject)
			delete(k.versions, subject)
		}
	}
	for subject, list := range found {
		if len(list) == 0 {
			continue
		}
		text, err := json.Marshal(list)
		if err != nil {
			panic(err) // evidence is finite
		}
		k.of[subject] = list
		k.versions[subject] = xxhash.Sum64(text)
		if before[subject] == k.versions[subject] {
			delete(before, subject)
		} else {
			before[subject] = 0
		}
	}
	for subject := range before {
		k.changed[subject] = time.Now().UTC()
	}
}

const (
	// measuredAfter is how long a campaign that has ended is compared with those that run: people still decide on it.
	measuredAfter = 28 * 24 * time.Hour
	// mostMeasured is the maximum number of visitors of a website that are compared, which take 24 bytes of memory
	// each.
	mostMeasured = 10_000_000
)

// subjectInteractions are the interactions of a subject as they are stored.
type subjectInteractions struct {
	Subject      schema.SubjectIDs    `json:"subject"`
	Interactions []result.Interaction `json:"interactions"`
}

// encodeInteractions returns the interactions of the subjects of a website as they are stored; empty: there are none.
func encodeInteractions(found map[schema.Subject][]result.Interaction) string {
	var list []subjectInteractions
	for _, subject := range slices.SortedFunc(maps.Keys(found), schema.Subject.Compare) {
		if len(found[subject]) > 0 {
			list = append(list, subjectInteractions{subject.IDs(), found[subject]})
		}
	}
	if len(list) == 0 {
		return ""
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic(err) // evidence is finite
	}
	return string(text)
}

// decodeInteractions decodes the output of encodeInteractions.
func decodeInteractions(website int64, text string) (map[schema.Subject][]result.Interaction, error) {
	found := map[schema.Subject][]result.Interaction{}
	if text == "" {
		return found, nil
	}
	var list []subjectInteractions
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("the stored interactions of website %d: %w", website, err)
	}
	for _, of := range list {
		found[subjectWith(website, of.Subject)] = of.Interactions
	}
	return found, nil
}

// subjectWith returns the subject of a website with ids.
func subjectWith(website int64, ids schema.SubjectIDs) schema.Subject {
	if ids.CampaignID != 0 {
		return schema.Subject{WebsiteID: website, Kind: schema.SubjectCampaign, ID: ids.CampaignID}
	}
	return schema.Subject{
		WebsiteID: website, Kind: schema.SubjectWidget, ID: ids.WidgetID, ExperimentID: ids.ExperimentID,
	}
}

// interactionsOf returns the key of what is measured for a website.
func interactionsOf(website int64) daily.Key {
	return daily.Key{
		Kind: daily.Measured, Subject: schema.Subject{WebsiteID: website, Kind: schema.SubjectNone},
	}
}

// ReadDaily reads what was done last. Reports then show the interactions that any process measured.
func (e *Engine) ReadDaily(ctx context.Context) error {
	if err := e.Daily.ReadRows(ctx); err != nil {
		return err
	}
	var wrong []error
	for _, row := range e.Daily.RowsOf(daily.Measured) {
		website := row.Subject.WebsiteID
		if e.interactions.isOf(website, row.Body) {
			continue
		}
		found, err := decodeInteractions(website, row.Body)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		e.interactions.replaceOfWebsite(website, row.Body, found)
	}
	return errors.Join(wrong...)
}

// keepInteractions replaces the interactions of the subjects of a website, and notes when they were measured.
func (e *Engine) keepInteractions(website int64, day time.Time, found map[schema.Subject][]result.Interaction) {
	text := encodeInteractions(found)
	e.Daily.NoteDone(daily.Row{Key: interactionsOf(website), Day: day, Body: text})
	e.interactions.replaceOfWebsite(website, text, found)
}

// DropSubjects deletes what was done for campaigns and widgets, and their interactions.
func (e *Engine) DropSubjects(ctx context.Context, subjects []schema.Subject) error {
	isDropped := func(s schema.Subject) bool { return slices.Contains(subjects, s.WithoutExperiment()) }
	websites := map[int64]bool{}
	for _, s := range subjects {
		websites[s.WebsiteID] = true
	}
	for website := range websites {
		found := e.interactions.ofWebsite(website)
		for subject, list := range found {
			found[subject] = slices.DeleteFunc(slices.Clone(list), func(i result.Interaction) bool {
				return isDropped(subject) || isDropped(subjectWith(website, i.With))
			})
		}
		last := e.Daily.LastRow(interactionsOf(website))
		if encodeInteractions(found) != last.Body {
			e.keepInteractions(website, last.Day, found)
		}
	}
	if err := e.Daily.WriteNoted(ctx); err != nil {
		return err
	}
	return e.Daily.DropSubjects(ctx, subjects)
}

// AreInteractionsMeasured reports whether the interactions of a website were measured on the day of a time.
func (e *Engine) AreInteractionsMeasured(website int64, now time.Time) bool {
	return e.Daily.IsDone(interactionsOf(website), 0, now)
}

// MeasureInteractions compares the campaigns and experiments of a website that run, or ended within 28 days, with
// those that ran at the same time. It reads one row a visitor, and nothing of campaigns that overlap no other one.
// Reports of all processes show the result until the next call. An interaction that was found stays while its pair is
// measured: the error rate is that of finding it at any time, so later data, which only add noise to a decision that
// waits, do not withdraw it. It returns the number of pairs that were measured, in both directions.
func (e *Engine) MeasureInteractions(
	ctx context.Context, owned *catalogue.AccountResources, website int64, now time.Time,
) (pairs int, err error) {
	campaigns, err := e.overlappingCampaigns(owned, website, now)
	if err != nil {
		return 0, err
	}
	visitors := 0
	for _, c := range campaigns {
		counters := e.facts.SubjectCounters(c.Plan.Subject)
		visitors += int(counters.Visitors)
		if visitors > mostMeasured {
			break
		}
		c.Visitors, err = e.readInteracting(ctx, c.Plan)
		if err != nil {
			return 0, err
		}
	}
	found := map[schema.Subject][]result.Interaction{}
	measured := interaction.MeasurePairs(campaigns, now)
	for i := range measured {
		subject := measured[i].Of.Plan.Subject
		with := measured[i].By.Plan.Subject.IDs()
		now := result.NewInteractions(&measured[i])
		found[subject] = append(found[subject], now...)
		for _, before := range e.interactions.ofSubject(subject) {
			isFound := slices.ContainsFunc(now, func(o result.Interaction) bool { return o.Kind == before.Kind })
			if before.With == with && !isFound {
				found[subject] = append(found[subject], before)
			}
		}
	}
	e.keepInteractions(website, daily.DayOf(now), found)
	return len(measured), e.Daily.WriteNoted(ctx)
}

// overlappingCampaigns returns the campaigns and experiments of a website with views that overlap another one, without
// their visitors, in the order of their first views.
func (e *Engine) overlappingCampaigns(
	owned *catalogue.AccountResources, website int64, now time.Time,
) (overlapping []*interaction.Campaign, err error) {
	var all []*interaction.Campaign
	for _, subject := range owned.Subjects() {
		first := e.firstView(subject).Time
		if subject.WebsiteID != website || first.IsZero() {
			continue
		}
		p, err := plan.New(plan.ResultsRequest(owned.ID, subject), owned)
		if err != nil {
			return nil, err
		}
		p = e.AsOfFirstView(p).DeclaredReport()
		if !canDecide(p) {
			continue
		}
		end, ended := p.EndedAt()
		if ended && now.Sub(end) > measuredAfter {
			continue
		}
		c := &interaction.Campaign{Plan: p, Name: owned.SubjectName(subject), Start: first}
		if ended {
			c.End = end
		}
		all = append(all, c)
	}
	for _, c := range all {
		if slices.ContainsFunc(all, func(o *interaction.Campaign) bool { return c.Overlaps(o, now) }) {
			overlapping = append(overlapping, c)
		}
	}
	slices.SortFunc(overlapping, func(a, b *interaction.Campaign) int {
		return cmp.Or(a.Start.Compare(b.Start), a.Plan.Subject.Compare(b.Plan.Subject))
	})
	return overlapping, nil
}

// readInteracting returns the visitors of the declared report of a plan, by id.
func (e *Engine) readInteracting(ctx context.Context, p *plan.Plan) ([]interaction.Visitor, error) {
	var visitors []interaction.Visitor
	err := e.facts.EachVisitor(ctx, p.Question, func(v *facts.Visitor) error {
		at := p.IndexOfVariation(v.VariationID)
		if at < 0 { // it is not declared
			return nil
		}
		visitors = append(visitors, interaction.Visitor{
			ID: v.ID, Variation: uint8(at), Value: valueOfVisitor(p.Declared.Metric, v), //nolint:gosec // few variations
		})
		return nil
	})
	slices.SortFunc(visitors, func(a, b interaction.Visitor) int { return cmp.Compare(a.ID, b.ID) })
	return visitors, err
}

// valueOfVisitor returns what a visitor contributes to a metric. It is 0 for a ratio of two sums.
func valueOfVisitor(metric query.Metric, v *facts.Visitor) float64 {
	hasAny := func(events uint64) float64 {
		if events > 0 {
			return 1
		}
		return 0
	}
	if v.X != nil {
		return *v.X
	}
	switch metric {
	case query.GoalConversionRate:
		return hasAny(v.GoalsReached)
	case query.ConversionRate:
		return hasAny(v.Conversions)
	case query.CompletionRate:
		return hasAny(v.Completions)
	case query.GoalsPerVisitor:
		return float64(v.GoalsReached)
	case query.ValuePerVisitor:
		return v.Value
	case query.ProfitPerVisitor:
		return v.Profit
	case query.ExtraValuePerVisitor:
		return v.ExtraValue
	case query.AverageValue: // a ratio of two sums
	}
	return 0
}
