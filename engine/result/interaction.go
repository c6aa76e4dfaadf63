package result

import (
	"fmt"
	"math"
	"strings"

	"lifthouse/engine/interaction"
	"lifthouse/engine/wording"
	"lifthouse/schema"
)

// The kinds of interactions.
const (
	InteractionOfEffect     = "effect"     // the lift depends on the variation of the other campaign
	InteractionOfAssignment = "assignment" // the split does
)

// Interaction says that another campaign of the website disturbs the subject of a report.
type Interaction struct {
	With   schema.SubjectIDs `json:"with"` // the other campaign, or the widget and its experiment
	Name   string            `json:"name"` // of the other one
	Kind   string            `json:"kind"`
	Shared int64             `json:"sharedVisitors"`
	// how many times likelier the data are with the interaction, after the number of pairs
	Evidence float64 `json:"evidence"`
	Text     string  `json:"text"`
}

// NewInteractions returns the interactions of a pair that have an alarm.
func NewInteractions(p *interaction.Pair) (found []Interaction) {
	add := func(kind string, evidence float64, text string) {
		found = append(found, Interaction{
			With: p.By.Plan.Subject.IDs(), Name: p.By.Name, Kind: kind,
			Shared: p.Shared, Evidence: evidence, Text: text,
		})
	}
	if p.Assignment >= interaction.AssignmentAlarm {
		add(InteractionOfAssignment, p.Assignment, assignmentInWords(p))
	}
	if p.Effect >= interaction.EffectAlarm {
		add(InteractionOfEffect, p.Effect, effectInWords(p))
	}
	return found
}

// effectInWords says how the lift of the treatment that differs most depends on the other campaign.
func effectInWords(p *interaction.Pair) string {
	effects := p.Effects()
	most := 0
	widest := -1.0
	for t := range effects {
		low, high := math.Inf(1), math.Inf(-1)
		for i := range effects[t] {
			if effects[t][i].Reason == "" {
				low = min(low, effects[t][i].Value)
				high = max(high, effects[t][i].Value)
			}
		}
		if high-low > widest {
			most = t
			widest = high - low
		}
	}
	var parts []string
	for by, e := range effects[most] {
		if lift, exists := e.Lift(e.Value); e.Reason == "" && exists {
			parts = append(parts, fmt.Sprintf("%s among those who saw %s there", wording.FormatPercent(lift, 1, true),
				p.By.Plan.Variations[by].Name))
		}
	}
	return fmt.Sprintf("The lift of %s of %q depends on %q: %s (evidence %s). Decide both together: ship the "+
		"combination that is best, or run one after the other.", p.Of.Plan.Variations[most+1].Name, p.Of.Name,
		p.By.Name, strings.Join(parts, ", "), evidenceInWords(p.Effect))
}

// assignmentInWords says that the split depends on the other campaign.
func assignmentInWords(p *interaction.Pair) string {
	return fmt.Sprintf("Which variation of %q visitors see depends on %q (evidence %s): among %s shared visitors, "+
		"the split differs between the variations of %q. Give each campaign its own seed, or exclude visitors of one "+
		"from the other, and start again.",
		p.Of.Name, p.By.Name, evidenceInWords(p.Assignment), wording.FormatCount(p.Shared), p.By.Name)
}

// evidenceInWords formats a Bayes factor: 40 : 1.
func evidenceInWords(factor float64) string {
	const most = 1e6
	if factor > most {
		return "over 1,000,000 : 1"
	}
	return wording.FormatCount(int64(math.Round(factor))) + " : 1"
}

// AddInteractions adds the interactions of the subject with other campaigns, and a warning of each.
func (r *Report) AddInteractions(found []Interaction) {
	r.Checks.Interactions = found
	for i := range found {
		text := strings.TrimSuffix(found[i].Text, ".")
		r.Checks.Warnings = append(r.Checks.Warnings, Warning{WarningInteraction, text})
	}
}
