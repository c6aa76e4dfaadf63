package render

import (
	"lifthouse/engine/result"
	"lifthouse/stats"
)

// Answer returns the answer to a question as a compact text: the question, and a table with a row for each variation.
// With a breakdown or a split, the rows are those of its values. The verdict says whether the answer holds.
func Answer(question string, r *result.Report, s Screen) string {
	t := &reportTable{
		&table{Screen: s, methodology: stats.Methodology(r.Methodology), level: r.SignificanceLevel}, r,
	}
	t.rate = r.IsShare()
	t.writeParagraph(bold, PrintableText(question))
	var rows []tableRow
	add := func(value string, of *result.Slice) {
		rows = append(rows, t.rowsOf(value, of)...)
	}
	switch {
	case r.Parts != nil:
		for i := range r.Parts.Items {
			part := &r.Parts.Items[i]
			for k := range part.Variations {
				rows = append(rows, t.partRow(part, k))
			}
		}
	case r.Dimension != nil:
		for i := range r.Breakdown {
			add(r.Breakdown[i].Value, &r.Breakdown[i].Slice)
		}
	default:
		add("", &r.Slice)
	}
	if len(rows) == 0 {
		t.writeLine("There are no values yet.")
		return t.out.String()
	}
	t.writeSection(rows)
	if c := r.Conclusion; c != nil && c.Status == stats.StatusInvalid {
		t.writeNoteLines([]string{PrintableText(c.Text)})
	}
	return t.out.String()
}
