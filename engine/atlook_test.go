package engine

import (
	"errors"
	"testing"
	"time"

	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// atLook returns what was known of the campaign at a look; 0: at the default one.
func (x *trial) atLook(number int) (*AtLook, error) {
	asked := &number
	if number == 0 {
		asked = nil
	}
	subject := schema.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 1}
	return x.engine.ReadAtLook(x.t.Context(), x.catalogue.Snapshot().AccountResources(1), subject, asked)
}

// withGuardrail declares that goals per visitor must not fall by more than 15 %.
func withGuardrail(x *trial) {
	guard := catalogue.Guardrail{GoalID: 1, Metric: "goalsPerVisitor", Margin: 15, Direction: catalogue.Up}
	x.campaign.Goals = &catalogue.Goals{Guardrails: []catalogue.Guardrail{guard}}
}

// TestReportsAtLooksAreThoseOfTheirTime follows a campaign week by week, and asks at its end what was known at each
// look: the looks, the conclusion and the decision are those that a report had then.
func TestReportsAtLooksAreThoseOfTheirTime(t *testing.T) {
	for name, isRecorded := range map[string]bool{"recorded": true, "computed": false} {
		t.Run(name, func(t *testing.T) {
			first := firstDay
			if isRecorded {
				first = time.Now().UTC().Truncate(24 * time.Hour)
			}
			x := newTrialOf(t, first, withGuardrail)
			scorecard := func(r *query.Request) { r.Scorecard = true }
			x.store(0, 50, 57)
			var then []*result.Report
			for week, converted := range []int{57, 61, 64, 40} {
				for day := range 7 {
					x.store(1+7*week+day, 50, converted)
				}
				x.refresh()
				if isRecorded {
					rows := x.recordAt(t, x.engine, first.AddDate(0, 0, 9+7*week))
					must.That(t, rows > 0, "no row is recorded in week %d", week+1)
					must.OK(t, x.other.Ledger.ReadNewRecords(t.Context()))
				}
				then = append(then, x.report(scorecard))
			}
			for i, want := range then {
				got := must.Get(x.atLook(i + 1))(t)
				check.Equal(t, got.Number, i+1)
				check.Equal(t, inJSON(t, got.Report.Looks), inJSON(t, want.Looks), "looks at look %d", i+1)
				check.Equal(t, inJSON(t, got.Report.Decision), inJSON(t, want.Decision), "decision at look %d", i+1)
				check.Equal(t, inJSON(t, got.Report.Conclusion), inJSON(t, want.Conclusion), "conclusion %d", i+1)
				check.Equal(t, got.Days, 7*(i+1))
				check.Equal(t, len(got.Devices.Breakdown), 2, "devices")
			}
			// The computed results of this readout are not kept as recorded ones.
			check.Equal(t, inJSON(t, x.report(scorecard).Looks), inJSON(t, then[3].Looks), "looks of today's report")
			decided := must.Get(x.atLook(0))(t)
			must.Equal(t, then[3].Decision.Status, result.DecisionShip)
			check.Equal(t, decided.Report.Decision.Status, result.DecisionShip)
			isBefore := decided.End.Before(*then[3].Decision.DecidedAt)
			check.That(t, !isBefore, "look %d is before the decision", decided.Number)
			check.That(t, decided.Number == 1 || then[decided.Number-2].Decision.Status != result.DecisionShip,
				"look %d is not the first one with the decision", decided.Number)
			_, err := x.atLook(5)
			var invalid *query.InvalidError
			must.That(t, errors.As(err, &invalid), "%v", err)
			check.Equal(t, invalid.Faults[0].String(), `look: "5": must be the number of a look, from 1 to 4`)
		})
	}
}

// TestReportsWithoutLooks asks for a look before there is one: nothing is known before the first week, then harm
// decides at the end of a day.
func TestReportsWithoutLooks(t *testing.T) {
	x := newTrial(t, time.Now().UTC().Truncate(24*time.Hour))
	_, err := x.atLook(0)
	check.That(t, errors.Is(err, ErrNothingToCompare), "without a view: %v", err)
	x.day(0, 50, 50)
	_, err = x.atLook(0)
	check.That(t, errors.Is(err, ErrNothingToCompare), "on the first day: %v", err)
	for day := range 4 {
		x.store(1+day, 100, 20)
	}
	x.refresh()
	must.Equal(t, x.recordAt(t, x.engine, x.first.AddDate(0, 0, 5).Add(time.Minute)), 1, "rows of the harm")
	found := must.Get(x.atLook(0))(t)
	check.Equal(t, found.Number, 0)
	check.Equal(t, found.Report.Decision.Status, result.DecisionRollBack)
	check.That(t, found.End.Equal(*found.Report.Decision.DecidedAt), "until %s, decided %s", found.End,
		found.Report.Decision.DecidedAt)
}
