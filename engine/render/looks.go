package render

import (
	"strconv"
	"time"

	"lifthouse/engine/result"
)

// Looks returns a table with a row for each look and variation: the result of the look, when it
// was recorded, and whether today's events give another result.
func Looks(r *result.Report) string {
	columns := []column{
		{title: "look"},
		{title: "until", left: true},
		{title: "visitors"},
		{title: "variation", left: true},
		{title: "lift"},
		{title: "interval"},
		{title: "z"},
		{title: "bound"},
		{title: "p"},
		{title: "", left: true},
		{title: "recorded", left: true},
	}
	names := map[int64]string{}
	for _, v := range r.Variations {
		names[v.ID] = ShortenText(PrintableText(v.Name), 22)
	}
	write := func(x float64) string { return result.FormatPercent(x, 1, true) }
	number := func(x float64) string { return strconv.FormatFloat(x, 'f', 3, 64) }
	for _, look := range r.Looks {
		recorded := "computed"
		if look.RecordedAt != nil {
			recorded = look.RecordedAt.UTC().Format("2006-01-02 15:04")
		}
		for _, v := range look.Variations {
			found, of := "", recorded
			if v.Significant {
				found = "significant"
			}
			if v.Recomputed != nil {
				of += ", later data changed it: " + formatOptional(v.Recomputed.Improvement.Value, write)
			}
			cells := []string{
				strconv.Itoa(look.Number), look.End.Add(-time.Millisecond).UTC().Format(time.DateOnly), result.FormatCount(look.Visitors), names[v.ID],
				formatOptional(v.Improvement.Value, write), result.RangeInWords(v.Improvement.Interval, write), formatOptional(v.Z, number),
				formatOptional(v.CriticalValue, number), formatOptional(v.PValue, result.FormatPValue), found, of,
			}
			for i := range columns {
				columns[i].cells = append(columns[i].cells, cells[i])
			}
		}
	}
	return Screen{}.gridText(columns, allRows) + "\n" + r.LooksInWords() + "\n"
}
