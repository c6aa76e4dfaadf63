package query

import "time"

// Programme asks what the shipped variations of a website are worth.
type Programme struct {
	WebsiteID int64
	GoalID    int64  // 0: that of most campaigns
	Metric    Metric // one of the pool; empty: that of most campaigns
	From, To  string // days that bound the dates of shipping; empty: open
}

// ParseProgramme parses the parameters of a programme.
func ParseProgramme(rawQuery string) (Programme, error) {
	p := ReadParameters(rawQuery, "goal", "metric", "from", "to")
	return ReadProgramme(p), p.Err()
}

// ReadProgramme returns the programme that parameters ask for, without the website.
func ReadProgramme(p *Parameters) Programme {
	asked := Programme{
		GoalID: p.ID("goal"), Metric: Metric(p.OneOf("metric", Comparable[ExperimentResults])), From: p.day("from"),
		To: p.day("to"),
	}
	if asked.From != "" && asked.To != "" && asked.To < asked.From {
		p.addFault("to", asked.To, "must not be before from, "+asked.From)
	}
	return asked
}

// day returns the day in a parameter, or an empty text if it is absent.
func (p *Parameters) day(name string) string {
	text, ok := p.SingleValue(name)
	if !ok {
		return ""
	}
	if _, err := time.Parse(time.DateOnly, text); err != nil {
		p.addFault(name, text, "must be a day such as 2026-03-02")
		return ""
	}
	return text
}
