package arrivals

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"lifthouse/engine/render"
	"lifthouse/engine/story"
	"lifthouse/schema"
	"lifthouse/schema/ingest"
)

// WriteStory prints what arrived about a visitor, whose id is given as it was sent, and how reports count it.
func WriteStory(w io.Writer, visitor string, arrived *ingest.OfVisitor, chapters []*story.Chapter) error {
	var out strings.Builder
	_, _ = fmt.Fprintf(&out, "Visitor %s, stored as %016x\n", visitor, schema.HashID(visitor))
	if len(chapters)+len(arrived.Rejects) == 0 {
		_, _ = fmt.Fprintln(&out,
			"\nNothing has arrived of this visitor. The id is case-sensitive; rejected lines are kept for a week.")
	}
	if arrived.Limited {
		_, _ = fmt.Fprintf(&out, "\nOnly the first events are considered: this visitor has more. It may be a bot.\n")
	}
	for _, c := range chapters {
		writeChapter(&out, c)
	}
	if len(arrived.Rejects) > 0 {
		_, _ = fmt.Fprintln(&out, "\nRejected in the last week:")
	}
	for _, r := range arrived.Rejects {
		_, _ = fmt.Fprintf(&out, "  %s  %s: %s\n", r.Time.UTC().Format(time.DateTime),
			lineOrigin(r.Channel, r.File, r.Line), r.Reason)
	}
	_, err := io.WriteString(w, render.PrintableText(out.String()))
	return err
}

// writeChapter prints how the report of a subject counts the visitor.
func writeChapter(out *strings.Builder, c *story.Chapter) {
	subject, isAttributed := c.Subject.ShortName(), c.Subject.Kind != schema.SubjectNone
	if !isAttributed {
		subject = "unattributed goals"
	}
	if c.Name != "" {
		subject += fmt.Sprintf(" (%s)", c.Name)
	}
	_, _ = fmt.Fprintf(out, "\nWebsite %d, %s: %s.\n", c.Subject.WebsiteID, subject, c.Why)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "  TIME (UTC)\tEVENT\tVARIATION\tVALUE\tCOUNTS\tWHY\tARRIVED")
	for _, e := range c.Lines {
		variation := ""
		if isAttributed {
			variation = strconv.FormatInt(e.VariationID, 10)
		}
		counts := map[bool]string{true: "yes", false: "no"}[e.Counts]
		_, _ = fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			e.Time.UTC().Format(time.DateTime), kindOf(e.Kind, e.GoalID, ""), variation, jsonAmount(e.Value), counts,
			e.Why, e.Arrival)
	}
	_ = table.Flush()
}
