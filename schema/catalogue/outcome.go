package catalogue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/faults"
)

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
	r, exists := resource{account, kind(of.Kind), of.ID}, false
	_, found, err = c.changeState(ctx, r, website, func(owned *AccountResources, state *State) (bool, error) {
		var variations []int64
		if variations, exists = owned.variationsOf(of); !exists {
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
