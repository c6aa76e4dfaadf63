package catalogue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/faults"
)

// State is the mutable state of a campaign, a widget or a target.
type State struct {
	Active     bool       `json:"active"`
	CreateDate time.Time  `json:"createDate"`
	UpdateDate time.Time  `json:"updateDate"`
	StartDate  *time.Time `json:"startDate,omitempty"`
	EndDate    *time.Time `json:"endDate,omitempty"`
	// ShareHistory is the history of the shares by experiment id. The key is 0 for a campaign.
	ShareHistory map[int64][]SharesSince `json:"shareHistory,omitempty"`
	// Runs are the periods in which the resource was active, in order. While the resource is active, the last period
	// has no end.
	Runs []Run `json:"runs,omitempty"`
	// PlanHistory is the history of the plans by experiment id. The key is 0 for a campaign. A plan that never changed
	// has no history.
	PlanHistory map[int64][]PlanSince `json:"planHistory,omitempty"`
	// Outcomes are what people did afterwards, by experiment id. The key is 0 for a campaign.
	Outcomes map[int64]Outcome `json:"outcomes,omitempty"`
	// LearnedPrior is that of a Bayesian campaign which learns it; nil: a server has not seen its first view yet.
	LearnedPrior *Prior `json:"learnedPrior,omitempty"`
}

// KeepPrior records the prior that a campaign has learned. The first one stays.
func (c *Catalogue) KeepPrior(ctx context.Context, account, campaign int64, prior Prior) error {
	_, _, err := c.changeState(ctx, resource{account, kindCampaign, campaign}, 0,
		func(_ *AccountResources, state *State) (isNew bool, err error) {
			isNew = state.LearnedPrior == nil
			state.LearnedPrior = cmp.Or(state.LearnedPrior, &prior)
			return isNew, nil
		})
	return err
}

// Run is a period in which a campaign or a widget was active.
type Run struct {
	From      time.Time  `json:"from"`
	To        *time.Time `json:"to,omitempty"`       // nil: still active
	Declared  bool       `json:"declared,omitempty"` // From is a declared date, not the time of a command
	StartedBy string     `json:"startedBy,omitempty"`
	StoppedBy string     `json:"stoppedBy,omitempty"`
}

// Plan is what a campaign or a widget experiment declares about how its conclusion is reached.
type Plan struct {
	PrimaryGoalID     int64                    `json:"primaryGoalId,omitempty"`
	ValueCap          *schema.Cap              `json:"valueCap,omitempty"`         // of the primary goal or metric
	ConversionWindow  *schema.ConversionWindow `json:"conversionWindow,omitempty"` // of the primary goal or metric; nil: none
	Methodology       string                   `json:"methodology"`
	SignificanceLevel int                      `json:"significanceLevel"`
	Power             int                      `json:"power"`
	MDE               float64                  `json:"mde"`
	LookPlan
	PrimaryMetric     string   `json:"primaryMetric,omitempty"` // of a declared one: DeclaredMetric.Text
	MultipleExposures string   `json:"multipleExposures,omitempty"`
	Prior             *Prior   `json:"prior,omitempty"`
	Goals             *Goals   `json:"goals,omitempty"` // without the primary one, with their windows; nil: none
	MinDays           *int     `json:"minDays,omitempty"`
	Questions         []string `json:"questions,omitempty"`

	// FollowUp has windows with the time after which orders have settled; nil: there are no readings.
	FollowUp *FollowUp `json:"followUp,omitempty"`
}

// PlanSince is a plan with the time from which it applies.
type PlanSince struct {
	Since time.Time `json:"since"`
	Plan
}

// DeclaredPlan returns the plan that the campaign declares, with what it refers to.
func (c *Campaign) DeclaredPlan(of *Terms) Plan {
	declared := Plan{
		Methodology: c.Methodology, SignificanceLevel: c.SignificanceLevel, Power: c.Power, MDE: c.MDE,
		LookPlan: c.LookPlan, MultipleExposures: c.MultipleExposures, Prior: c.Prior, Goals: c.Goals.resolveTerms(of),
		MinDays: c.MinDays, Questions: c.Questions, FollowUp: c.FollowUp.resolveGoal(of, c.PrimaryGoalID),
	}
	declared.setPrimary(of, c.PrimaryGoalID, c.PrimaryMetric)
	return declared
}

// DeclaredPlan returns the plan that the experiment declares, with what it refers to. The primary goal is that of the
// widget. An experiment cannot declare a methodology, a level, a power or a minimum effect.
func (e *Experiment) DeclaredPlan(primaryGoal int64, of *Terms) Plan {
	declared := Plan{
		Methodology: Frequentist, SignificanceLevel: 95, Power: 80, MDE: 20,
		LookPlan: e.LookPlan, Goals: e.Goals.resolveTerms(of), MinDays: e.MinDays, Questions: e.Questions,
	}
	declared.setPrimary(of, primaryGoal, e.PrimaryMetric)
	return declared
}

// setPrimary sets the primary metric: a metric of a goal, or a declared one, which names its goals itself.
func (p *Plan) setPrimary(of *Terms, goal int64, name string) {
	if m, isDeclared := of.FindMetric(name); isDeclared {
		p.PrimaryMetric = m.Text
		p.ConversionWindow = m.longestWindow()
		p.ValueCap = m.Cap
		return
	}
	primary := of.goals[goal]
	p.PrimaryGoalID = goal
	p.PrimaryMetric = name
	p.ConversionWindow = primary.Window()
	p.ValueCap = primary.ValueCap
}

// countsAllGoals reports whether the primary metric is one of a goal, and no goal is declared.
func (p *Plan) countsAllGoals() bool {
	isOfGoal := p.PrimaryMetric == "" || slices.Contains(GoalMetrics, p.PrimaryMetric)
	return isOfGoal && p.PrimaryGoalID == 0
}

// plansByExperiment returns the plan of the campaign.
func (c *Campaign) plansByExperiment(of *Terms) map[int64]Plan {
	return map[int64]Plan{0: c.DeclaredPlan(of)}
}

// plansByExperiment returns the plans of the experiments of the widget, by id.
func (w *Widget) plansByExperiment(of *Terms) map[int64]Plan {
	plans := map[int64]Plan{}
	for i := range w.Experiments {
		plans[w.Experiments[i].ID] = w.Experiments[i].DeclaredPlan(w.PrimaryGoalID, of)
	}
	return plans
}

// ChangedFields returns the names of the fields in which two plans differ, in alphabetical order.
func (p Plan) ChangedFields(other Plan) []string {
	var names []string
	was, is := reflect.ValueOf(p), reflect.ValueOf(other)
	for _, field := range reflect.VisibleFields(was.Type()) {
		if !field.Anonymous && !reflect.DeepEqual(was.FieldByIndex(field.Index).Interface(),
			is.FieldByIndex(field.Index).Interface()) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// recordPlans appends the changed plans to the history, and reports whether it did. If a plan has no history yet, its
// plan in before becomes the first entry. A new experiment has no history.
func (s *State) recordPlans(before, after map[int64]Plan, now time.Time) bool {
	recorded := false
	for experiment, plan := range after {
		was, existed := before[experiment]
		history := s.PlanHistory[experiment]
		if n := len(history); n > 0 {
			was = history[n-1].Plan
		}
		if !existed && len(history) == 0 || reflect.DeepEqual(was, plan) {
			continue
		}
		if len(history) == 0 {
			history = []PlanSince{{Since: s.CreateDate, Plan: was}}
		}
		if s.PlanHistory == nil {
			s.PlanHistory = map[int64][]PlanSince{}
		}
		s.PlanHistory[experiment] = append(history, PlanSince{Since: now, Plan: plan})
		recorded = true
	}
	return recorded
}

// PlanAt returns the plan in effect at a time, or the first plan if the time precedes the whole history. The history
// must not be empty.
func PlanAt(history []PlanSince, t time.Time) Plan {
	plan := history[0].Plan
	for _, p := range history {
		if !p.Since.After(t) {
			plan = p.Plan
		}
	}
	return plan
}

// Shares are the weights of the variations by id. Key 0 is the percentage of control.
type Shares map[int64]int

// SharesSince are shares with the time from which they apply.
type SharesSince struct {
	Since  time.Time `json:"since"`
	Shares Shares    `json:"shares"`
}

// CurrentShares returns the current shares of an experiment, or of a campaign if experiment is 0. It returns nil if no
// shares are recorded.
func (s *State) CurrentShares(experiment int64) Shares {
	history := s.ShareHistory[experiment]
	if len(history) == 0 {
		return nil
	}
	return history[len(history)-1].Shares
}

// recordShares appends the shares to the history if they divide the traffic differently from the current ones. If
// correct is set, they replace the whole history. It reports whether the history changed.
func (s *State) recordShares(shares map[int64]Shares, now time.Time, correct bool) bool {
	recorded := false
	for experiment, given := range shares {
		history := s.ShareHistory[experiment]
		same := len(history) > 0 && s.CurrentShares(experiment).divideAs(given)
		if same && (!correct || len(history) == 1) {
			continue
		}
		since := now
		if correct && len(history) > 0 {
			since = history[0].Since
			history = nil
		}
		if s.ShareHistory == nil {
			s.ShareHistory = map[int64][]SharesSince{}
		}
		s.ShareHistory[experiment] = append(history, SharesSince{Since: since, Shares: given})
		recorded = true
	}
	return recorded
}

// divideAs reports whether both shares give every variation the same fraction of the visitors. For example, weights of
// 33 and 33 are equivalent to 50 and 50.
func (s Shares) divideAs(other Shares) bool {
	if s[0] != other[0] {
		return false
	}
	mine, others := s.sumWeights(), other.sumWeights()
	if s[0] == 100 || mine == 0 || others == 0 {
		return s[0] == 100 || mine == others
	}
	for _, shares := range []Shares{s, other} {
		for variation := range shares {
			if variation != 0 && s[variation]*others != other[variation]*mine {
				return false
			}
		}
	}
	return true
}

// sumWeights returns the sum of the variations' weights, excluding control.
func (s Shares) sumWeights() int {
	sum := -s[0]
	for _, weight := range s {
		sum += weight
	}
	return sum
}

// Switch starts or stops a campaign or a widget of the account, and returns the resources of the account with its new
// state. If website is not 0, it must belong to this website. found is false if there is no such campaign or widget. If
// it already has the state, nothing changes.
func (c *Catalogue) Switch(ctx context.Context, account, website int64, of schema.SubjectKind, id int64, active bool) (
	owned *AccountResources, found bool, err error,
) {
	r := resource{account, kind(of), id}
	return c.changeState(ctx, r, website, func(_ *AccountResources, state *State) (bool, error) {
		if state.Active == active {
			return false, nil
		}
		now := time.Now().UTC().Truncate(time.Millisecond)
		state.Active = active
		state.UpdateDate = now
		state.EndDate = nil
		state.Runs = slices.Clone(state.Runs)
		if active {
			state.Runs = append(state.Runs, Run{From: now, StartedBy: AuthorOf(ctx)})
			state.StartDate = cmp.Or(state.StartDate, &now)
			return true, nil
		}
		state.EndDate = &now
		if last := len(state.Runs) - 1; last >= 0 {
			state.Runs[last].To = &now
			state.Runs[last].StoppedBy = AuthorOf(ctx)
		}
		return true, nil
	})
}

// changeState changes the state of a resource, and returns the resources of its account. change reports whether the
// state changed. found is false if the website does not have the resource.
func (c *Catalogue) changeState(ctx context.Context, r resource, website int64,
	change func(*AccountResources, *State) (bool, error),
) (owned *AccountResources, found bool, err error) {
	at := key{r.account, r.kind, r.id, partState}
	current, err := c.changeRows(ctx, &r, func(current []row, known *Snapshot) ([]row, error) {
		owned := known.AccountResources(r.account)
		campaign, exists := owned.Campaigns[r.id]
		state, of := campaign.State, campaign.WebsiteID
		if r.kind == kindWidget {
			var widget LiveWidget
			widget, exists = owned.Widgets[r.id]
			state, of = widget.State, widget.WebsiteID
		}
		found = exists && (website == 0 || website == of)
		if !found {
			return nil, nil
		}
		if changed, err := change(owned, &state); err != nil || !changed {
			return nil, err
		}
		body, err := encodeJSON(state)
		next := row{key: at, Version: 1, Body: body}
		if before := slices.IndexFunc(current, func(r row) bool { return r.key == at }); before >= 0 {
			next.Version = current[before].Version + 1
		}
		return []row{next}, err
	})
	if err != nil {
		return &AccountResources{}, false, err
	}
	known, err := newSnapshot(current)
	if err != nil {
		return &AccountResources{}, false, err
	}
	return known.AccountResources(r.account), found, nil
}

// Ended is a campaign, or a widget with its experiments, that has ended.
type Ended struct {
	schema.Subject
	Name    string
	EndDate time.Time
	// FollowedUntil is when the last window of its follow-up was read; EndDate: it has none.
	FollowedUntil time.Time
}

// WasDeclared reports whether the catalogue declares a campaign or a widget, or declared it before it was archived.
func (s *Snapshot) WasDeclared(subject schema.Subject) bool {
	return s.ever[key{s.ownerOf(subject.WebsiteID), kind(subject.Kind), subject.ID, partDefinition}]
}

// EndedSubjects returns the campaigns and widgets that are inactive and whose end date is not later than now. Active
// and archived resources are not included, nor those without an end date.
func (s *Snapshot) EndedSubjects(now time.Time) []Ended {
	var ended []Ended
	add := func(subject schema.Subject, name string, state State, followed time.Duration) {
		if !state.Active && state.EndDate != nil && !state.EndDate.After(now) {
			ended = append(ended, Ended{subject, name, *state.EndDate, state.EndDate.Add(followed)})
		}
	}
	for _, owned := range s.AllAccounts() {
		for _, c := range ByID(owned.Campaigns) {
			declared := c.DeclaredPlan(owned.TermsOf(c.WebsiteID))
			add(c.Subject(), c.Name, c.State, declared.followUpTime())
		}
		for _, w := range ByID(owned.Widgets) {
			add(w.Subject(0), w.Name, w.State, 0)
		}
	}
	return ended
}

// Outcome is what people did after a campaign or an experiment.
type Outcome struct {
	Outcome     string `yaml:"outcome" json:"outcome"`                   // Shipped, Dropped or Excluded
	VariationID int64  `yaml:"variationId" json:"variationId,omitempty"` // that was shipped
	Date        string `yaml:"date" json:"date"`                         // day, such as 2026-03-02
	Note        string `yaml:"note" json:"note,omitempty"`
}

// The outcomes. An excluded campaign says nothing about the others, such as an A/A test.
const (
	Shipped  = "shipped"
	Dropped  = "dropped"
	Excluded = "excluded"
)

// Outcomes are all outcomes that people can record.
var Outcomes = []string{Shipped, Dropped, Excluded}

// maxNote is the maximum length of a note in bytes.
const maxNote = 2_048

// ErrRunning means that a running campaign or widget cannot be dropped.
var ErrRunning = errors.New("it is running: stop it first")

// SetOutcome records what people did after a campaign or an experiment; nil: it returns to the default. If website is
// not 0, the subject must belong to this website. found is false if there is no such subject. The error may be
// ErrRunning, or a faults.List with all faults of the outcome.
func (c *Catalogue) SetOutcome(
	ctx context.Context, account, website int64, of schema.Subject, o *Outcome,
) (found bool, err error) {
	r := resource{account, kind(of.Kind), of.ID}
	exists := false
	_, found, err = c.changeState(ctx, r, website, func(owned *AccountResources, state *State) (bool, error) {
		var variations []int64
		variations, exists = owned.variationsOf(of)
		if !exists {
			return false, nil
		}
		before := state.Outcomes[of.ExperimentID]
		outcomes := map[int64]Outcome{}
		maps.Copy(outcomes, state.Outcomes)
		state.Outcomes = outcomes
		if o == nil {
			delete(outcomes, of.ExperimentID)
			return before != Outcome{}, nil
		}
		var wrong faults.Collector
		wrong.AddIf(!slices.Contains(Outcomes, o.Outcome),
			"outcome", o.Outcome, "must be one of "+strings.Join(Outcomes, ", "))
		switch isVariation := slices.Contains(variations, o.VariationID); {
		case o.Outcome == Shipped && !isVariation:
			wrong.Add("variationId", o.VariationID, "must be the shipped variation, one of "+
				strings.Join(strings.Fields(strings.Trim(fmt.Sprint(variations), "[]")), ", "))
		case o.Outcome != Shipped && o.VariationID != 0:
			wrong.Add("variationId", o.VariationID, "must be omitted unless the outcome is shipped")
		}
		day, invalid := time.Parse(time.DateOnly, o.Date)
		wrong.AddIf(invalid != nil || day.Before(schema.FirstTime) || day.After(time.Now()),
			"date", o.Date, "must be a day such as 2026-03-02, not in the future, or be omitted for today")
		wrong.AddIf(o.Outcome == Excluded && o.Note == "", "note", o.Note, "must say why the campaign is excluded")
		wrong.AddIf(len(o.Note) > maxNote,
			"note", faults.Clip(o.Note, maxNote), fmt.Sprintf("must have at most %d bytes", maxNote))
		if err := wrong.List.Err(); err != nil {
			return false, err
		}
		if o.Outcome == Dropped && state.Active {
			return false, ErrRunning
		}
		outcomes[of.ExperimentID] = *o
		return before != *o, nil
	})
	return found && exists, err
}

// variationsOf returns the ids of the variations of a subject besides control 0, and whether there is such a subject.
func (o *AccountResources) variationsOf(of schema.Subject) (ids []int64, exists bool) {
	if of.Kind == schema.SubjectCampaign {
		campaign, exists := o.Campaigns[of.ID]
		for _, v := range campaign.Variations {
			ids = append(ids, v.ID)
		}
		return ids, exists
	}
	for _, e := range o.Widgets[of.ID].Experiments {
		if e.ID == of.ExperimentID {
			exists = true
			for _, v := range e.Variations {
				ids = append(ids, v.ID)
			}
		}
	}
	return ids, exists
}

// StateOf returns the state of a campaign, or of the widget of an experiment.
func (o *AccountResources) StateOf(of schema.Subject) State {
	if of.Kind == schema.SubjectCampaign {
		return o.Campaigns[of.ID].State
	}
	return o.Widgets[of.ID].State
}
