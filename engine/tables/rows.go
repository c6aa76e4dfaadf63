package tables

import "time"

// A row of each table. The tags of the fields are the only definition of the columns; see fieldsOf. Columns are only
// appended, and none changes.

// subjectKey are the key columns of all tables.
type subjectKey struct {
	WebsiteID    int64   `parquet:"websiteId,dict" means:"website"`
	Domain       string  `parquet:"domain,dict" means:"domain of the website"`
	Kind         string  `parquet:"kind,dict" means:"campaign or experiment; of decisions, also website: a note about all of it"`
	SubjectID    int64   `parquet:"subjectId" means:"id of the campaign, of the widget of the experiment, or of the website"`
	ExperimentID *int64  `parquet:"experimentId" null:"a campaign or a website" means:"id of the experiment in its widget"`
	Key          *string `parquet:"key,dict" null:"none" means:"key of the campaign"`
	Name         string  `parquet:"name,dict" means:"name of the campaign, of the widget and its experiment, or domain of the website"`
}

// experimentRow is a campaign or an experiment.
type experimentRow struct {
	subjectKey

	Type                *string    `parquet:"type,dict" null:"none" means:"type of the campaign or the widget"`
	Active              bool       `parquet:"active" means:"it runs"`
	StartDate           *time.Time `parquet:"startDate,timestamp(millisecond)" null:"not started" means:"start"`
	EndDate             *time.Time `parquet:"endDate,timestamp(millisecond)" null:"not ended" means:"end"`
	Owner               *string    `parquet:"owner,dict" null:"none" means:"who answers for it"`
	Tags                *string    `parquet:"tags,dict" null:"none" means:"tags, separated by a comma and a space"`
	Hypothesis          *string    `parquet:"hypothesis" null:"none" means:"what is expected, and why"`
	Methodology         string     `parquet:"methodology,dict" means:"frequentist or bayesian"`
	SignificanceLevel   int64      `parquet:"significanceLevel" unit:"per cent" means:"significance level"`
	GoalID              *int64     `parquet:"goalId" null:"all goals count" means:"primary goal"`
	Goal                *string    `parquet:"goal,dict" null:"all goals count" means:"name of the primary goal"`
	Metric              *string    `parquet:"metric,dict" null:"nothing is compared" means:"primary metric"`
	PlannedDays         *int64     `parquet:"plannedDays" unit:"days" null:"nothing is compared" means:"planned length, in whole weeks"`
	Decision            *string    `parquet:"decision,dict" null:"nothing to decide" means:"ship, rollBack, noDifference, noWinner, keepRunning or invalid"`
	DecisionVariationID *int64     `parquet:"decisionVariationId" null:"the decision is about none" means:"variation to ship or to roll back"`
	DecidedAt           *time.Time `parquet:"decidedAt,timestamp(millisecond)" null:"no look or day decided" means:"end of the look or the day that decided"`
	DecidedLook         *int64     `parquet:"decidedLook" null:"no look concluded" means:"number of the look that concluded"`
	Outcome             *string    `parquet:"outcome,dict" null:"nobody recorded it" means:"what was done: shipped, dropped or excluded"`
	OutcomeVariationID  *int64     `parquet:"outcomeVariationId" null:"none was shipped" means:"variation that was shipped"`
	OutcomeDate         *Day       `parquet:"outcomeDate,date" null:"nobody recorded it" means:"day of the outcome"`
	SampleRatioMismatch *bool      `parquet:"sampleRatioMismatch" null:"nothing is compared" means:"the visitors are not divided as declared: do not use the results"`
	Warnings            *string    `parquet:"warnings,dict" null:"none" means:"codes of the warnings, separated by spaces; without SILENT, which depends on the clock"`
	Visitors            int64      `parquet:"visitors" means:"visitors that count"`
	FullDays            *int64     `parquet:"fullDays" unit:"days" null:"nothing is compared" means:"full days (UTC) since the first visitor"`
	NextLookEnd         *time.Time `parquet:"nextLookEnd,timestamp(millisecond)" null:"none follows" means:"end of the next look"`
	ChangedAt           time.Time  `parquet:"changedAt,timestamp(millisecond)" means:"when the results last changed, or later"`
}

// resultRow is a variation in a row of the scorecard.
type resultRow struct {
	subjectKey

	GoalID            *int64     `parquet:"goalId" null:"all goals count" means:"goal"`
	Goal              *string    `parquet:"goal,dict" null:"all goals count" means:"name of the goal"`
	Metric            string     `parquet:"metric,dict" means:"metric"`
	ConversionWindow  string     `parquet:"conversionWindow,dict" means:"ages of the events that count, such as 7d; none: all"`
	Role              string     `parquet:"role,dict" means:"primary, guardrail, secondary or other"`
	Direction         string     `parquet:"direction,dict" means:"up or down: the good direction"`
	VariationID       int64      `parquet:"variationId" means:"variation; 0: the declared control"`
	Variation         string     `parquet:"variation,dict" means:"name of the variation"`
	Control           bool       `parquet:"control" means:"it is the one that the others are compared with"`
	Share             int64      `parquet:"share" means:"relative weight in the split of the traffic"`
	Visitors          int64      `parquet:"visitors" means:"visitors that count"`
	ConvertedVisitors int64      `parquet:"convertedVisitors" means:"visitors with an event of the goal"`
	GoalsReached      int64      `parquet:"goalsReached" means:"events of the goal"`
	Value             *float64   `parquet:"value" unit:"money" null:"in currencies without a rate" means:"sum of the values, without a cap"`
	Profit            *float64   `parquet:"profit" unit:"money" null:"in currencies without a rate" means:"sum of the profits, without a cap"`
	Estimate          *float64   `parquet:"estimate" unit:"of the metric" null:"cannot be computed" means:"value of the metric"`
	EstimateLower     *float64   `parquet:"estimateLower" unit:"of the metric" null:"unbounded" means:"lower end of its interval"`
	EstimateUpper     *float64   `parquet:"estimateUpper" unit:"of the metric" null:"unbounded" means:"upper end of its interval"`
	Lift              *float64   `parquet:"lift" unit:"fraction" null:"control, or cannot be computed" means:"relative difference from control, of today: it describes"`
	LiftLower         *float64   `parquet:"liftLower" unit:"fraction" null:"unbounded" means:"lower end of its interval"`
	LiftUpper         *float64   `parquet:"liftUpper" unit:"fraction" null:"unbounded" means:"upper end of its interval"`
	PValue            *float64   `parquet:"pValue" null:"control, or Bayesian" means:"p-value of a single test of today: it describes"`
	QValue            *float64   `parquet:"qValue" null:"no declared secondary metric" means:"p-value at the last look, adjusted over the secondary metrics"`
	Verdict           *string    `parquet:"verdict,dict" null:"control" means:"better, worse, inconclusive or insufficientData"`
	Conclusive        *bool      `parquet:"conclusive" null:"it only describes" means:"a look supports the verdict"`
	Guardrail         *string    `parquet:"guardrail,dict" null:"no guardrail" means:"safe, harmed or notYetKnown"`
	Margin            *float64   `parquet:"margin" unit:"fraction" null:"no guardrail, or an absolute margin" means:"the largest acceptable loss"`
	Look              *int64     `parquet:"look" null:"there was none" means:"number of the last look"`
	LookEnd           *time.Time `parquet:"lookEnd,timestamp(millisecond)" null:"there was none" means:"end of the last look"`
	LookLift          *float64   `parquet:"lookLift" unit:"fraction" null:"there was none" means:"lift at the last look"`
	LookLower         *float64   `parquet:"lookLower" unit:"fraction" null:"unbounded" means:"lower end of its interval"`
	LookUpper         *float64   `parquet:"lookUpper" unit:"fraction" null:"unbounded" means:"upper end of its interval"`
	LookPValue        *float64   `parquet:"lookPValue" null:"there was none" means:"p-value at the last look, valid at every look"`
	LookSignificant   *bool      `parquet:"lookSignificant" null:"there was none" means:"the last look is significant"`
	DataThrough       *time.Time `parquet:"dataThrough,timestamp(millisecond)" null:"no event" means:"when the newest event of the campaign or experiment was accepted"`
}

// lookRow is a row of the ledger, or a look that is computed from the events.
type lookRow struct {
	subjectKey

	Question           string     `parquet:"question,dict" means:"what is declared about the decision; looks of one declaration belong together"`
	GoalID             *int64     `parquet:"goalId" null:"all goals count" means:"goal"`
	Metric             string     `parquet:"metric,dict" means:"metric"`
	ConversionWindow   string     `parquet:"conversionWindow,dict" means:"ages of the events that count, such as 7d; none: all"`
	LookKind           string     `parquet:"lookKind,dict" means:"look, end (of the campaign), harm (of the metric), split (mismatch) or returns (orders change at different ages)"`
	Look               int64      `parquet:"look" means:"number of the look; of an end: of full days; else 0"`
	EndedAt            time.Time  `parquet:"endedAt,timestamp(millisecond)" means:"end of the look or the day"`
	LastDay            Day        `parquet:"lastDay,date" means:"its last day (UTC)"`
	VariationID        *int64     `parquet:"variationId" null:"about all variations" means:"variation that is compared with control"`
	Variation          *string    `parquet:"variation,dict" null:"about all variations" means:"name of the variation, as it is now"`
	Visitors           int64      `parquet:"visitors" means:"visitors of the look, over all variations"`
	ControlVisitors    *int64     `parquet:"controlVisitors" null:"no sums" means:"visitors of control"`
	ControlConverted   *int64     `parquet:"controlConverted" null:"no sums" means:"visitors of control with an event of the goal"`
	ControlGoals       *int64     `parquet:"controlGoals" null:"no sums" means:"events of the goal of control"`
	ControlValue       *float64   `parquet:"controlValue" unit:"money" null:"no sums, or currencies without a rate" means:"sum of the values of control, without a cap"`
	TreatmentVisitors  *int64     `parquet:"treatmentVisitors" null:"no sums" means:"visitors of the variation"`
	TreatmentConverted *int64     `parquet:"treatmentConverted" null:"no sums" means:"visitors of the variation with an event of the goal"`
	TreatmentGoals     *int64     `parquet:"treatmentGoals" null:"no sums" means:"events of the goal of the variation"`
	TreatmentValue     *float64   `parquet:"treatmentValue" unit:"money" null:"no sums, or currencies without a rate" means:"sum of the values of the variation, without a cap"`
	Tau                *float64   `parquet:"tau" null:"no look" means:"time on the clock of the plan, whose end is 1"`
	CriticalValue      *float64   `parquet:"criticalValue" null:"no boundary" means:"bound that the size of z must reach"`
	Z                  *float64   `parquet:"z" null:"cannot be computed" means:"test statistic"`
	PValue             *float64   `parquet:"pValue" null:"cannot be computed" means:"p-value, valid at every look"`
	Difference         *float64   `parquet:"difference" unit:"of the metric" null:"cannot be computed" means:"difference from control"`
	DifferenceLower    *float64   `parquet:"differenceLower" unit:"of the metric" null:"unbounded" means:"lower end of its interval"`
	DifferenceUpper    *float64   `parquet:"differenceUpper" unit:"of the metric" null:"unbounded" means:"upper end of its interval"`
	Lift               *float64   `parquet:"lift" unit:"fraction" null:"cannot be computed" means:"relative difference from control"`
	LiftLower          *float64   `parquet:"liftLower" unit:"fraction" null:"unbounded" means:"lower end of its interval"`
	LiftUpper          *float64   `parquet:"liftUpper" unit:"fraction" null:"unbounded" means:"upper end of its interval"`
	Chance             *float64   `parquet:"chance" null:"frequentist" means:"chance to beat control"`
	Significant        bool       `parquet:"significant" means:"the look is significant"`
	RecordedAt         *time.Time `parquet:"recordedAt,timestamp(millisecond)" null:"computed from the events, so it may still change" means:"when it was recorded: the row never changes"`
}

// decisionRow is an entry of the log of decisions.
type decisionRow struct {
	subjectKey

	EntryID     string     `parquet:"entryId" means:"id of the entry; it never changes"`
	At          time.Time  `parquet:"at,timestamp(millisecond)" means:"when it was written down"`
	By          *string    `parquet:"by,dict" null:"the server" means:"token or command, and its user"`
	Entry       string     `parquet:"entry,dict" means:"decision, check, look, outcome, started, stopped, shares, plan, archived, readout, note or annotation"`
	Status      *string    `parquet:"status,dict" null:"none" means:"the decision, the check, the outcome, or significant or notSignificant of a look"`
	VariationID *int64     `parquet:"variationId" null:"about none or several" means:"variation"`
	Text        string     `parquet:"text" means:"one sentence"`
	StartsAt    *time.Time `parquet:"startsAt,timestamp(millisecond)" null:"no span" means:"start of what the entry is about"`
	EndsAt      *time.Time `parquet:"endsAt,timestamp(millisecond)" null:"no span" means:"end of what the entry is about"`
	Link        *string    `parquet:"link" null:"none" means:"link"`
	ReadoutID   *string    `parquet:"readoutId" null:"none" means:"readout"`
	WithdrawnAt *time.Time `parquet:"withdrawnAt,timestamp(millisecond)" null:"it stands" means:"when the note or the readout was withdrawn"`
}

// worthRow is a treatment with what it is worth.
type worthRow struct {
	subjectKey

	GoalID                    *int64     `parquet:"goalId" null:"all goals count" means:"goal of the pool"`
	Currency                  *string    `parquet:"currency,dict" null:"not declared" means:"currency of the website"`
	VariationID               int64      `parquet:"variationId" means:"variation"`
	Variation                 string     `parquet:"variation,dict" means:"name of the variation"`
	Metric                    string     `parquet:"metric,dict" means:"metric on which the campaign is decided"`
	Of                        string     `parquet:"of,dict" means:"the visitors of the amounts: tested or allTraffic"`
	Allocation                *int64     `parquet:"allocation" unit:"per cent" null:"not declared" means:"declared share of the traffic in the test"`
	State                     *string    `parquet:"state,dict" null:"there is none yet" means:"look or end: what the numbers are of"`
	EndedAt                   *time.Time `parquet:"endedAt,timestamp(millisecond)" null:"there is none yet" means:"end of this look or of the campaign"`
	Shipped                   bool       `parquet:"shipped" means:"this variation was shipped"`
	Outcome                   string     `parquet:"outcome,dict" means:"of the campaign: shipped, dropped, excluded or undecided"`
	OutcomeVariationID        *int64     `parquet:"outcomeVariationId" null:"none was shipped" means:"variation that was shipped"`
	OutcomeDate               *Day       `parquet:"outcomeDate,date" null:"undecided" means:"day of the outcome"`
	OutcomeNote               *string    `parquet:"outcomeNote" null:"none" means:"what people noted"`
	OutcomeDeclared           bool       `parquet:"outcomeDeclared" means:"a person recorded the outcome"`
	ObservedLift              *float64   `parquet:"observedLift" unit:"fraction" null:"see reason" means:"observed lift"`
	ObservedPerMonth          *float64   `parquet:"observedPerMonth" unit:"of the metric a month" null:"see reason" means:"observed gain a month"`
	ObservedValuePerMonth     *float64   `parquet:"observedValuePerMonth" unit:"money a month" null:"see valueReason" means:"observed gain of value a month"`
	ExpectedLift              *float64   `parquet:"expectedLift" unit:"fraction" null:"see reason" means:"lift to expect, below the observed one of most winners"`
	ExpectedLiftLower         *float64   `parquet:"expectedLiftLower" unit:"fraction" null:"see reason" means:"lower end of its interval"`
	ExpectedLiftUpper         *float64   `parquet:"expectedLiftUpper" unit:"fraction" null:"see reason" means:"upper end of its interval"`
	ExpectedPerMonth          *float64   `parquet:"expectedPerMonth" unit:"of the metric a month" null:"see reason" means:"gain a month to expect"`
	ExpectedPerMonthLower     *float64   `parquet:"expectedPerMonthLower" unit:"of the metric a month" null:"see reason" means:"lower end of its interval"`
	ExpectedPerMonthUpper     *float64   `parquet:"expectedPerMonthUpper" unit:"of the metric a month" null:"see reason" means:"upper end of its interval"`
	ExpectedValuePerMonth     *float64   `parquet:"expectedValuePerMonth" unit:"money a month" null:"see valueReason" means:"gain of value a month to expect"`
	ExpectedValuePerMonthLow  *float64   `parquet:"expectedValuePerMonthLower" unit:"money a month" null:"see valueReason" means:"lower end of its interval"`
	ExpectedValuePerMonthHigh *float64   `parquet:"expectedValuePerMonthUpper" unit:"money a month" null:"see valueReason" means:"upper end of its interval"`
	Chance                    *float64   `parquet:"chance" null:"see reason" means:"chance that the true effect is above 0"`
	Reason                    *string    `parquet:"reason,dict" null:"there are numbers" means:"why there are no numbers"`
	ValueReason               *string    `parquet:"valueReason,dict" null:"there is a value, or no number at all" means:"why there is no value a month"`
}

// seriesRow is what a day adds to a goal of a variation.
type seriesRow struct {
	subjectKey

	Day               Day      `parquet:"day,date" means:"day (UTC)"`
	VariationID       int64    `parquet:"variationId" means:"variation; 0: the declared control"`
	GoalID            *int64   `parquet:"goalId" null:"all goals count" means:"goal with a role"`
	Visitors          int64    `parquet:"visitors" means:"visitors with their first view on the day; with a conversion window, those whose window ended on it"`
	ConvertedVisitors int64    `parquet:"convertedVisitors" means:"visitors with their first event of the goal on the day"`
	GoalsReached      int64    `parquet:"goalsReached" means:"events of the goal"`
	Value             *float64 `parquet:"value" unit:"money" null:"in currencies without a rate" means:"sum of the values, without a cap"`
	Profit            *float64 `parquet:"profit" unit:"money" null:"in currencies without a rate" means:"sum of the profits, without a cap"`
	ConversionWindow  string   `parquet:"conversionWindow,dict" means:"ages of the events that count, such as 7d; none: all"`
}

// segmentRow is a variation among the visitors with a value of an attribute. It describes and concludes nothing.
type segmentRow struct {
	subjectKey

	Attribute         string   `parquet:"attribute,dict" means:"attribute of the first view, such as device"`
	Segment           string   `parquet:"segment,dict" means:"its value; (none): not set; (other): all others together"`
	VariationID       int64    `parquet:"variationId" means:"variation; 0: the declared control"`
	Visitors          int64    `parquet:"visitors" means:"visitors that count"`
	ConvertedVisitors int64    `parquet:"convertedVisitors" means:"visitors with an event of the primary goal"`
	Value             *float64 `parquet:"value" unit:"money" null:"in currencies without a rate" means:"sum of the values, without a cap"`
	Estimate          *float64 `parquet:"estimate" unit:"of the metric" null:"cannot be computed" means:"value of the primary metric"`
	Lift              *float64 `parquet:"lift" unit:"fraction" null:"control, or cannot be computed" means:"relative difference from control in the segment"`
	LiftLower         *float64 `parquet:"liftLower" unit:"fraction" null:"unbounded" means:"lower end of its interval"`
	LiftUpper         *float64 `parquet:"liftUpper" unit:"fraction" null:"unbounded" means:"upper end of its interval"`
	MinusOthers       *float64 `parquet:"minusOthers" unit:"fraction" null:"control, or cannot be computed" means:"lift in the segment minus the lift among all others"`
	MinusOthersLower  *float64 `parquet:"minusOthersLower" unit:"fraction" null:"unbounded" means:"lower end of its interval"`
	MinusOthersUpper  *float64 `parquet:"minusOthersUpper" unit:"fraction" null:"unbounded" means:"upper end of its interval"`
	Reason            *string  `parquet:"reason,dict" null:"there is a lift" means:"why there is no lift"`
}
