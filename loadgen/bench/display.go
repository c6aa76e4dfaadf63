package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Display shows a run as it goes on: one table that is drawn again and again
// on a terminal, and elsewhere a line now and then.
type Display struct {
	To       io.Writer
	Progress io.Writer // of what goes on, where To is no terminal; nil: To as well
	Terminal bool

	drawn int // lines of the table that stands
}

// Every is how often the display wants to be told.
func (d *Display) Every() time.Duration {
	if d.Terminal {
		return 500 * time.Millisecond
	}
	return 5 * time.Second
}

// Live shows what is known so far.
func (d *Display) Live(l Live) {
	head := fmt.Sprintf("%s at %.4g/s, %s of %s", l.Phase, l.Rate, l.Elapsed.Round(time.Second), l.Of)
	if !d.Terminal {
		f := &l.All
		to := d.To
		if d.Progress != nil {
			to = d.Progress
		}
		_, _ = fmt.Fprintf(to, "%s: %d answered, p50 %.1f ms, p99 %.1f ms, %d failed or not sent\n", head, f.Answered, f.Latency.P50, f.Latency.P99, failures(f))
		return
	}
	d.erase()
	table := head + "\n" + tableOf(append(slices.Clone(l.Kinds), l.All))
	d.write("\x1b[?7l%s\x1b[?7h", table) // cut off by a narrow terminal, not broken into more lines
	d.drawn = strings.Count(table, "\n")
}

// Step shows what a step measured: all of it, or of a ladder a line.
func (d *Display) Step(s Step, ladder bool) {
	d.erase()
	if !ladder {
		d.write("%.4g requests a second were due, %.4g were answered well.\n%s", s.Rate, s.Achieved, tableOf(append(slices.Clone(s.Kinds), s.All)))
		d.write("%s%s", failuresOf(&s.All), s.Server.text())
		return
	}
	verdict := "meets the target"
	if !s.Met {
		verdict = "misses it: " + s.Why
	}
	d.write("%8.4g/s   p50 %7.1f   p95 %7.1f   p99 %7.1f   max %7.1f ms   %s\n", s.Rate, s.All.Latency.P50, s.All.Latency.P95, s.All.Latency.P99, s.All.Latency.Max, verdict)
}

// End shows what the whole run says.
func (d *Display) End(r *Result) {
	if r.ladder() && r.Saturation > 0 {
		d.write("Saturation: %.4g requests a second, p99 at most %g ms (mix %s).\n", r.Saturation, r.TargetP99, r.Mix)
	}
	for _, note := range r.Notes {
		d.write("Note: %s.\n", note)
	}
}

// erase goes back to where the table that stands begins.
func (d *Display) erase() {
	if d.drawn > 0 {
		d.write("\x1b[%dA\x1b[J", d.drawn)
	}
	d.drawn = 0
}

func (d *Display) write(format string, args ...any) {
	_, _ = fmt.Fprintf(d.To, format, args...)
}

// tableOf is a line for each kind, latencies in milliseconds.
func tableOf(figures []Figures) string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(table, "kind\tanswered\tfailed\tnot sent\tp50\tp90\tp95\tp99\tp99.9\tmax ms\t")
	for _, f := range figures {
		name, l := string(f.Kind), f.Latency
		if name == "" {
			name = "all"
		}
		_, _ = fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t\n",
			name, f.Answered, failures(&f)-f.NotSent, f.NotSent, l.P50, l.P90, l.P95, l.P99, l.P999, l.Max)
	}
	_ = table.Flush()
	return text.String()
}

// failures are the requests that ended otherwise than well, and those not
// sent. Those under way are neither.
func failures(f *Figures) int64 {
	ended := int64(0)
	for _, n := range f.Statuses {
		ended += int64(n)
	}
	return ended - f.Answered + f.NotSent
}

func failuresOf(f *Figures) string {
	var parts []string
	for name, n := range f.Statuses {
		parts = append(parts, fmt.Sprintf("%s: %d", name, n))
	}
	slices.Sort(parts)
	return "by status: " + strings.Join(parts, ", ") + "\n"
}

// text says what the server told of itself.
func (s *Server) text() string {
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
