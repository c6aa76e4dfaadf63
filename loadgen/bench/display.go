package bench

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// String formats the figures of a running step as one line.
func (p Progress) String() string {
	return fmt.Sprintf("%s at %.4g/s, %s of %s: %d succeeded, p50 %.1f ms, p99 %.1f ms, %d failed or not sent",
		p.Phase, p.Rate, p.Elapsed.Round(time.Second), p.Of, p.All.Succeeded, p.All.Latency.P50, p.All.Latency.P99, p.All.Failures())
}

// LadderText formats a step of a ladder as one line.
func (s *Step) LadderText() string {
	verdict := "meets the target"
	if !s.Met {
		verdict = "misses the target: " + s.Miss
	}
	l := s.All.Latency
	return fmt.Sprintf("%8.4g/s   p50 %7.1f   p95 %7.1f   p99 %7.1f   max %7.1f ms   %s\n", s.Rate, l.P50, l.P95, l.P99, l.Max, verdict)
}

// String formats the figures of a step as a table with latencies in milliseconds, and the server's metrics.
func (s *Step) String() string {
	var text strings.Builder
	_, _ = fmt.Fprintf(&text, "scheduled %.4g requests/s, succeeded %.4g requests/s\n", s.Rate, s.Achieved)
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(table, "kind\tsucceeded\tfailed\tnot sent\tp50\tp90\tp95\tp99\tp99.9\tmax ms\t")
	for _, f := range append(slices.Clone(s.Kinds), s.All) {
		l := f.Latency
		_, _ = fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t\n",
			cmp.Or(f.Kind, "all"), f.Succeeded, f.Failures()-f.NotSent, f.NotSent, l.P50, l.P90, l.P95, l.P99, l.P999, l.Max)
	}
	_ = table.Flush()
	_, _ = fmt.Fprintf(&text, "by status: %s\n", countsText(s.All.Statuses))
	if m := s.Server; m != nil {
		_, _ = fmt.Fprintf(&text, "server: %.2f cores, %.0f MiB resident, %.0f store queries of %.1f ms, results: %s\n",
			m.Cores, m.ResidentBytes/(1<<20), m.StoreQueries, m.StoreMean, countsText(m.Results))
	}
	return text.String()
}

// countsText formats counts by name, in the order of the names.
func countsText[N int | float64](counts map[string]N) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s: %v", name, counts[name]))
	}
	return strings.Join(parts, ", ")
}

// String formats the saturation rate and the notes.
func (r *Result) String() string {
	var text strings.Builder
	if r.isLadder() && r.Saturation > 0 {
		_, _ = fmt.Fprintf(&text, "Saturation: %.4g requests/s with a p99 of at most %g ms (mix %s).\n", r.Saturation, r.TargetP99, r.Mix)
	}
	_, _ = text.WriteString(r.barsText())
	for _, note := range r.Notes {
		_, _ = fmt.Fprintf(&text, "Note: %s.\n", note)
	}
	return text.String()
}
