package query

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"lifthouse/schema/faults"
)

// Table is a request for a table.
type Table struct {
	WebsiteID  int64     // 0: all
	Since      time.Time // only of campaigns and experiments that have changed since then; zero: all
	Attributes []string  // of segments
	From, To   string    // days of a series, inclusive; empty: open

	GoalID int64  // of the pools of worth; 0: any
	Metric Metric // of the pools of worth; empty: any
}

// The parts of the name of a file, as errors name them.
const (
	TableOfFile  = "table"
	FormatOfFile = "format"
)

const (
	paramSince     = "since"
	paramAttribute = "attribute"
	paramFrom      = "from"
	paramTo        = "to"

	// UsualAttribute is the attribute of segments without the parameter.
	UsualAttribute = "device"
	// maxAttributes is the maximum number of attributes of segments.
	maxAttributes = 3
)

// TableParameters returns the parameters of a table.
func TableParameters(name string) []string {
	switch name {
	case "worth":
		return []string{paramWebsite}
	case "series":
		return []string{paramWebsite, paramFrom, paramTo}
	case "segments":
		return []string{paramWebsite, paramAttribute}
	}
	return []string{paramWebsite, paramSince}
}

// ParseTable parses the name of a file, such as results.parquet, and the query string of a request for a table. names
// are the tables and formats the endings of the files. The error is an InvalidError with all faults.
func ParseTable(
	file, rawQuery string, names, formats []string, now time.Time,
) (name, format string, t Table, err error) {
	name, format, _ = strings.Cut(file, ".")
	parameters := TableParameters(name)
	isTable := slices.Contains(names, name)
	if !isTable { // what each of them has is no further fault
		parameters = []string{paramWebsite, paramSince, paramAttribute, paramFrom, paramTo}
	}
	p := ReadParameters(rawQuery, parameters...)
	if !isTable {
		p.addFault(TableOfFile, name, "unknown table; "+faults.SuggestName(name, names))
	}
	if !slices.Contains(formats, format) {
		p.addFault(FormatOfFile, format, "unknown ending of a file; "+faults.SuggestName(format, formats))
	}
	programme := Programme{From: p.day(paramFrom), To: p.day(paramTo)}
	p.checkDays(&programme)
	t = Table{
		WebsiteID: p.ID(paramWebsite), Since: p.parseSince(now), Attributes: p.parseAttributes(),
		From: programme.From, To: programme.To,
	}
	return name, format, t, p.Err()
}

// parseAttributes returns the attributes of segments, each once.
func (p *Parameters) parseAttributes() []string {
	given := p.values[paramAttribute]
	if len(given) == 0 {
		return []string{UsualAttribute}
	}
	var attributes []string
	for _, attribute := range given {
		switch {
		case !p.checkValue(paramAttribute, attribute) || slices.Contains(attributes, attribute):
		case slices.Contains(Dimensions, attribute):
			attributes = append(attributes, attribute)
		default:
			p.addFault(paramAttribute, attribute, "unknown attribute; "+faults.SuggestName(attribute, Dimensions))
		}
	}
	if len(attributes) > maxAttributes {
		p.addFault(paramAttribute, strings.Join(attributes, ", "), fmt.Sprintf("at most %d attributes", maxAttributes))
	}
	return attributes
}
