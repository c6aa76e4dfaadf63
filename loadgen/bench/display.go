package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Display shows the progress and the results of a load test as text. On a
// terminal it redraws one table. Otherwise it writes lines.
type Display struct {
	Out         io.Writer
	ProgressOut io.Writer // progress lines if Out is not a terminal; nil: Out
	Terminal    bool      // Out is a terminal

	drawnLines int // lines of the table on the terminal
}

// ProgressPeriod returns the time between two calls of ShowProgress.
func (d *Display) ProgressPeriod() time.Duration {
	if d.Terminal {
		return 500 * time.Millisecond
	}
	return 5 * time.Second
}

// ShowProgress shows the figures of a running step.
func (d *Display) ShowProgress(p Progress) {
	head := fmt.Sprintf("%s at %.4g/s, %s of %s", p.Phase, p.Rate, p.Elapsed.Round(time.Second), p.Of)
	if !d.Terminal {
		f := &p.All
		out := d.Out
		if d.ProgressOut != nil {
			out = d.ProgressOut
		}
		_, _ = fmt.Fprintf(out, "%s: %d succeeded, p50 %.1f ms, p99 %.1f ms, %d failed or not sent\n", head, f.Succeeded, f.Latency.P50, f.Latency.P99, f.Failures())
		return
	}
	d.eraseTable()
	table := head + "\n" + tableOf(append(slices.Clone(p.Kinds), p.All))
	d.writeText("\x1b[?7l%s\x1b[?7h", table) // no line wrap: a wrapped table has more lines than eraseTable expects
	d.drawnLines = strings.Count(table, "\n")
}

// ShowStep shows the result of a step: one line for a ladder, otherwise a table.
func (d *Display) ShowStep(s Step, ladder bool) {
	d.eraseTable()
	if !ladder {
		d.writeText("scheduled %.4g requests/s, succeeded %.4g requests/s\n%s", s.Rate, s.Achieved, tableOf(append(slices.Clone(s.Kinds), s.All)))
		d.writeText("%s%s", statusText(&s.All), s.Server.metricsText())
		return
	}
	verdict := "meets the target"
	if !s.Met {
		verdict = "misses the target: " + s.Miss
	}
	d.writeText("%8.4g/s   p50 %7.1f   p95 %7.1f   p99 %7.1f   max %7.1f ms   %s\n", s.Rate, s.All.Latency.P50, s.All.Latency.P95, s.All.Latency.P99, s.All.Latency.Max, verdict)
}

// ShowSummary shows the saturation rate and the notes.
func (d *Display) ShowSummary(r *Result) {
	if r.isLadder() && r.Saturation > 0 {
		d.writeText("Saturation: %.4g requests/s with a p99 of at most %g ms (mix %s).\n", r.Saturation, r.TargetP99, r.Mix)
	}
	for _, note := range r.Notes {
		d.writeText("Note: %s.\n", note)
	}
}

// eraseTable erases the table on the terminal.
func (d *Display) eraseTable() {
	if d.drawnLines > 0 {
		d.writeText("\x1b[%dA\x1b[J", d.drawnLines)
	}
	d.drawnLines = 0
}

func (d *Display) writeText(format string, args ...any) {
	_, _ = fmt.Fprintf(d.Out, format, args...)
}

// tableOf formats figures as a table with latencies in milliseconds.
func tableOf(figures []Figures) string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(table, "kind\tsucceeded\tfailed\tnot sent\tp50\tp90\tp95\tp99\tp99.9\tmax ms\t")
	for _, f := range figures {
		l := f.Latency
		_, _ = fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t\n",
			f.kindName(), f.Succeeded, f.Failures()-f.NotSent, f.NotSent, l.P50, l.P90, l.P95, l.P99, l.P999, l.Max)
	}
	_ = table.Flush()
	return text.String()
}

// kindName returns the kind, or "all".
func (f *Figures) kindName() string {
	if f.Kind == "" {
		return "all"
	}
	return string(f.Kind)
}

func statusText(f *Figures) string {
	var parts []string
	for name, n := range f.Statuses {
		parts = append(parts, fmt.Sprintf("%s: %d", name, n))
	}
	slices.Sort(parts)
	return "by status: " + strings.Join(parts, ", ") + "\n"
}

// metricsText formats the server's metrics, or returns "" if s is nil.
func (s *Server) metricsText() string {
	if s == nil {
		return ""
	}
	var outcomes []string
	for name, n := range s.Results {
		outcomes = append(outcomes, fmt.Sprintf("%s %.0f", name, n))
	}
	slices.Sort(outcomes)
	return fmt.Sprintf("server: %.2f cores, %.0f MiB resident, %.0f store queries of %.1f ms, results: %s; %.0f shed, %.0f rate limited\n",
		s.Cores, s.ResidentBytes/(1<<20), s.StoreQueries, s.StoreMean, strings.Join(outcomes, ", "), s.Shed, s.RateLimited)
}
