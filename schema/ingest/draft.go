package ingest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxMapped is the largest number of values that a drafted mapping of variations lists.
const maxMapped = shownValues

// controls are the usual names of control, in lower case.
var controls = []string{"control", "0", "a", "base", "baseline", "original", "kontrolle", "off", "false"}

// DraftMapping returns a mapping file with the guessed columns. Comments mark what the user must
// fill in: the ids of the website, campaign and goal.
func (in *Inspection) DraftMapping(name string) string {
	var b strings.Builder
	line := func(format string, values ...any) { _, _ = fmt.Fprintf(&b, format+"\n", values...) }
	guess := in.GuessColumns()
	column := func(field, missing string) string {
		if c, known := guess[field]; known {
			return strconv.Quote(c.Name)
		}
		return missing
	}
	line("# Mapping of %s for lifthouse import, guessed from its columns. Check the lines with a comment.", strings.Map(printableRune, name))
	if in.Separator != 0 && in.Separator != rune(separators[0]) {
		line("separator: %s", strconv.Quote(string(in.Separator)))
	}
	if in.Encoding != "" {
		line("encoding: %-26s # check that names with accents are right", in.Encoding)
	}
	if in.ShortRows {
		line("shortRows: true                     # some rows have fewer cells than the header")
	}
	if value, known := guess["value"]; known && value.Comma {
		line(`decimal: ","`)
	}
	when := viewConditions(guess)
	line("fields:")
	line("  websiteId: {value: 1}             # the id of the website in the catalogue")
	if when == "" {
		line("  campaignId: {value: 1}            # the id of the campaign")
	}
	line("  visitor: %s", column("visitor", `""                       # the column with the id of the visitor`))
	line("  time: %s", timeSource(guess))
	if when == "" {
		line("  variationId: %s", variationSource(guess))
	}
	for _, field := range []string{"country", "device", "browser"} {
		if c, known := guess[field]; known {
			line("  %s: %s", field, strconv.Quote(c.Name))
		}
	}
	line("events:")
	if when == "" {
		line("  - fields: {event: {value: view}}")
	} else {
		line("  - when: [%s] # the rows with a view", when)
		line("    fields:")
		line("      event: {value: view}")
		line("      campaignId: {value: 1}        # the id of the campaign")
		line("      variationId: %s", variationSource(guess))
	}
	if value, known := guess["value"]; known {
		line("  - when: {column: %s, above: 0}", strconv.Quote(value.Name))
		line("    fields: {event: {value: goal}, goalId: {value: 1}, value: %s} # the id of the goal", strconv.Quote(value.Name))
		if value.Grouped != "" {
			line("# %s has numbers such as %s: export them without thousands separators.", strings.Map(printableRune, value.Name), strings.Map(printableRune, value.Grouped))
		}
	}
	return b.String()
}

// viewConditions returns the conditions that select the rows with a view, if not all rows
// have one. Goals of rows without a view count for the campaigns that their visitors saw.
func viewConditions(guess map[string]Column) string {
	var when []string
	if c, known := guess["experiment"]; known && (c.Distinct > 1 || c.Empty > 0) && len(c.Values) > 0 {
		when = append(when, fmt.Sprintf("{column: %s, equals: %s}", strconv.Quote(c.Name), strconv.Quote(c.Values[0])))
	}
	if c, known := guess["variationId"]; known && c.Empty > 0 {
		when = append(when, fmt.Sprintf(`{column: %s, not: ""}`, strconv.Quote(c.Name)))
	}
	return strings.Join(when, ", ")
}

// timeSource returns the source of the time.
func timeSource(guess map[string]Column) string {
	c, known := guess["time"]
	switch {
	case !known:
		return `""                          # the column with the time`
	case c.Layout == "":
		return strconv.Quote(c.Name)
	}
	zone, comment := "", ""
	if c.Layout != formatUnix && c.Layout != formatUnixMicroseconds && !strings.Contains(c.Layout, "-07") {
		zone, comment = ", zone: UTC", " # the zone may be a place, such as Europe/Paris"
	}
	if strings.HasPrefix(c.Layout, "0") && strings.Contains(c.Layout, "/") {
		comment += "; 01 is the month and 02 the day: check the order"
	}
	return fmt.Sprintf("{column: %s, format: %s%s}%s", strconv.Quote(c.Name), strconv.Quote(c.Layout), zone, comment)
}

// variationSource returns the source of the variation: the column, or a map of its values
// to ids. Control gets 0, the other values 1, 2, ….
func variationSource(guess map[string]Column) string {
	c, known := guess["variationId"]
	switch {
	case !known:
		return `""                   # the column with the variation; 0 is control`
	case c.Type == ColumnInteger:
		return strconv.Quote(c.Name) + " # 0 is control"
	case c.Distinct > maxMapped:
		return strconv.Quote(c.Name) + " # map its values to ids: {column: …, map: {control: 0, …}}"
	}
	values := slices.Clone(c.Values)
	slices.SortStableFunc(values, func(x, y string) int { return controlRank(x) - controlRank(y) })
	ids := make([]string, len(values))
	for i, v := range values {
		ids[i] = fmt.Sprintf("%s: %d", strconv.Quote(v), i)
	}
	return fmt.Sprintf("{column: %s, map: {%s}} # 0 is control", strconv.Quote(c.Name), strings.Join(ids, ", "))
}

func controlRank(value string) int {
	if at := slices.Index(controls, strings.ToLower(value)); at >= 0 {
		return at
	}
	return len(controls)
}

// printableRune replaces characters that would end a comment.
func printableRune(r rune) rune {
	if !strconv.IsPrint(r) {
		return '?'
	}
	return r
}
