package render

import (
	"bytes"
	"cmp"
	_ "embed" // the picture's template
	"encoding/xml"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"text/template"

	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/stats"
)

//go:embed forest.svg
var forestSVG string

// forestTemplate escapes every text, because names are user input.
var forestTemplate = template.Must(template.New("").Funcs(template.FuncMap{
	"text": func(text string) (string, error) {
		var b strings.Builder
		err := xml.EscapeText(&b, []byte(text))
		return b.String(), err
	},
	"px": func(x float64) string { return fmt.Sprintf("%.1f", x) },
}).Parse(forestSVG))

// The dimensions of a forest plot in pixels, and of its texts in characters.
const (
	forestWidth   = 960
	forestIndent  = 20
	forestLeft    = 310 // of the scale
	forestRight   = 600
	forestRow     = 26
	forestLetters = 105 // of a line
	forestLabel   = 26
	forestTicks   = 5
)

// Colours that colour-blind readers can distinguish.
const (
	forestBetter = "#0072b2"
	forestWorse  = "#b34700"
	forestOther  = "#59636e"
)

// forest holds the data of the template. The y coordinate of a text is its
// baseline.
type forest struct {
	Summary, ValueHead          string
	Width, Height               int
	HeadY, Top, Bottom, TickY   int
	VisitorsX, ValueX, VerdictX int
	Lines                       []forestText
	Ticks                       []forestTick
	Rows                        []forestDrawn
	Legend                      []forestText
	least, most                 float64
	next                        int // y of the next element
	results                     *result.Report
	write                       func(float64) string
}

type forestText struct {
	Text         string
	Y            int
	Bold         bool
	LineY, Thick int // of a legend
}

type forestTick struct {
	X     float64
	Label string
	Zero  bool
}

type forestDrawn struct {
	Heading                                 bool
	Label, Visitors, Value, Verdict, Colour string
	Indent, Y, TextY                        int
	Bars                                    []forestBar
	HasPoint                                bool
	Point                                   float64
}

type forestBar struct {
	From, To            float64
	OpenLeft, OpenRight bool
	Y, Thick            int
	Colour              string
}

// effect is a row of the plot. A row without an estimate is a heading.
type effect struct {
	label    string
	visitors int64
	estimate *result.Effect
	look     *result.Bounds     // interval of the last look
	compared *result.Comparison // nil: no comparison
	verdict  judged             // of the comparison
}

// ForestPlot returns an SVG of the lifts and their intervals: of the report,
// and of each value of its dimension. If nothing is compared, it shows the goal
// conversion rates.
func ForestPlot(r *result.Report) ([]byte, error) {
	effects := collectEffects(r)
	f := &forest{
		results: r, Width: forestWidth, VisitorsX: forestLeft - 20, ValueX: forestRight + 20, VerdictX: forestWidth - forestIndent,
		ValueHead: "improvement", Summary: headlineText(r),
	}
	if r.CompareMetric == nil {
		f.ValueHead = result.MetricInWords(query.GoalConversionRate)
	}
	f.setScale(effects)
	f.addTexts()
	f.HeadY = f.next
	f.next += 10
	f.Top = f.next
	for _, e := range effects {
		f.addRow(e)
	}
	f.Bottom = f.next + 4
	f.TickY = f.Bottom + 18
	f.addTicks()
	f.next = f.TickY + 28
	f.addLegend()
	f.Height = f.next
	var svg bytes.Buffer
	err := forestTemplate.Execute(&svg, f)
	return svg.Bytes(), err
}

// headlineText returns the conclusion, or a description if nothing is compared.
func headlineText(r *result.Report) string {
	if r.Conclusion != nil {
		return r.Conclusion.Text
	}
	return fmt.Sprintf("Totals of the variations of widget %d; nothing is compared.", r.WidgetID)
}

// ReportSubtitle returns one line that describes the report: subject, goal, metric,
// method, size and time.
func ReportSubtitle(r *result.Report) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch {
	case r.CampaignID != 0:
		add("Campaign %d", r.CampaignID)
	case r.ExperimentID != 0:
		add("Widget %d, experiment %d", r.WidgetID, r.ExperimentID)
	default:
		add("Widget %d", r.WidgetID)
	}
	if r.Goal != nil {
		add("goal %s", r.Goal.Name)
	}
	if r.CompareMetric != nil {
		add("%s", result.MetricInWords(*r.CompareMetric))
	}
	add("%s, %d %%", r.Methodology, r.SignificanceLevel)
	add("%s visitors", result.FormatCount(r.Totals.Visitors))
	for _, name := range slices.Sorted(maps.Keys(r.Filters)) {
		add("%s: %s", name, valuesInWords(r.Filters[name]))
	}
	if r.Checks.Cap != nil {
		add("cap %s", r.Checks.Cap.Rule)
	}
	if r.Window.From != nil {
		add("from %s", query.FormatInstant(*r.Window.From))
	}
	if r.Window.To != nil {
		add("until %s", query.FormatInstant(*r.Window.To))
	}
	if r.DataThrough != nil {
		add("data through %s", r.DataThrough.UTC().Format("2006-01-02 15:04"))
	}
	return strings.Join(parts, " · ")
}

// valuesInWords returns the values of a filter. An empty text means not set.
func valuesInWords(filter any) string {
	values, several := filter.([]string)
	if !several {
		values = []string{fmt.Sprint(filter)}
	}
	words := make([]string, len(values))
	for i, value := range values {
		words[i] = cmp.Or(value, "not set")
	}
	return strings.Join(words, ", ")
}

func collectEffects(r *result.Report) []effect {
	var effects []effect
	add := func(heading string, c *result.Slice) {
		if heading != "" {
			effects = append(effects, effect{label: heading, visitors: c.Totals.Visitors})
		}
		for i := range c.Variations {
			v := &c.Variations[i]
			e := effect{label: v.Name, visitors: v.Visitors}
			switch rate := &v.Metrics.GoalConversionRate; {
			case r.CompareMetric == nil:
				e.estimate = &result.Effect{Value: rate.Value, Interval: rate.Interval, Reason: rate.Reason}
			case v.Comparison == nil:
				continue
			default:
				e.estimate, e.compared = &v.Comparison.Improvement, v.Comparison
				e.verdict = judged{v.Comparison.VerdictInWords(), c.ConclusiveVerdict(v.Comparison)}
				if v.Comparison.Sequential != nil {
					e.look = v.Comparison.Sequential.Improvement
				}
			}
			effects = append(effects, e)
		}
	}
	if r.Dimension == nil {
		add("", &r.Slice)
		return effects
	}
	add("All visitors", &r.Slice)
	for i := range r.Breakdown {
		add(r.Breakdown[i].Value, &r.Breakdown[i].Slice)
	}
	return effects
}

// setScale sets a scale that covers all estimates and the intervals of their single tests. The
// intervals of looks may be wider.
func (f *forest) setScale(effects []effect) {
	var ends []float64
	spread := math.Inf(1)
	for _, e := range effects {
		if e.estimate == nil {
			continue
		}
		reaching := []*float64{e.estimate.Value}
		if in := e.estimate.Interval; in != nil {
			reaching = append(reaching, in[0], in[1])
		}
		for _, x := range reaching {
			if x != nil {
				ends = append(ends, *x)
			}
		}
		if half := result.HalfWidth(e.estimate.Value, e.estimate.Interval); half > 0 {
			spread = min(spread, half)
		}
	}
	f.least, f.most, _ = LiftRange(ends)
	f.write = func(x float64) string {
		return result.FormatPercent(x, result.PercentDecimals(spread), f.results.CompareMetric != nil)
	}
}

func (f *forest) addTexts() {
	f.next = 34
	for _, line := range WrapText(f.Summary, forestLetters) {
		f.Lines = append(f.Lines, forestText{Text: line, Y: f.next, Bold: true})
		f.next += 20
	}
	for _, line := range WrapText(ReportSubtitle(f.results), forestLetters+forestLetters/7) {
		f.Lines = append(f.Lines, forestText{Text: line, Y: f.next})
		f.next += 18
	}
	f.next += 16
}

func (f *forest) addRow(e effect) {
	row := forestDrawn{
		Label: ShortenText(e.label, forestLabel), Visitors: result.FormatCount(e.visitors), Colour: forestOther,
		Indent: forestIndent, Y: f.next + forestRow/2, TextY: f.next + forestRow/2 + 5,
	}
	f.next += forestRow
	if e.estimate == nil {
		row.Heading = true
		f.Rows = append(f.Rows, row)
		return
	}
	if f.results.Dimension != nil {
		row.Indent += 14
	}
	if e.compared != nil {
		switch e.verdict.verdict {
		case stats.VerdictBetter:
			row.Colour = forestBetter
		case stats.VerdictWorse:
			row.Colour = forestWorse
		case stats.VerdictInconclusive, stats.VerdictInsufficientData:
		}
		row.Verdict = e.verdict.words
	}
	f.addBar(&row, e.look, 1)
	f.addBar(&row, e.estimate.Interval, 5)
	row.Value = "–"
	if e.estimate.Value != nil {
		row.HasPoint, row.Point = true, f.positionX(*e.estimate.Value)
		row.Value = f.write(*e.estimate.Value) + "  " + result.RangeInWords(e.estimate.Interval, f.write)
	}
	f.Rows = append(f.Rows, row)
}

// addBar adds an interval. An arrow marks an end that is unbounded or outside the
// scale.
func (f *forest) addBar(row *forestDrawn, interval *result.Bounds, thick int) {
	if interval == nil || interval[0] == nil && interval[1] == nil {
		return
	}
	bar := forestBar{From: forestLeft, To: forestRight, OpenLeft: true, OpenRight: true, Y: row.Y, Thick: thick, Colour: row.Colour}
	if interval[0] != nil && *interval[0] >= f.least {
		bar.From, bar.OpenLeft = f.positionX(*interval[0]), false
	}
	if interval[1] != nil && *interval[1] <= f.most {
		bar.To, bar.OpenRight = f.positionX(*interval[1]), false
	}
	row.Bars = append(row.Bars, bar)
}

func (f *forest) positionX(value float64) float64 {
	share := (value - f.least) / (f.most - f.least)
	return forestLeft + min(max(share, 0), 1)*(forestRight-forestLeft)
}

func (f *forest) addTicks() {
	step := NiceStep((f.most - f.least) / forestTicks)
	for k := math.Ceil(f.least/step) + 0; k*step <= f.most; k++ {
		label := result.FormatPercent(k*step, StepDecimals(step), k != 0 && f.results.CompareMetric != nil)
		f.Ticks = append(f.Ticks, forestTick{X: f.positionX(k * step), Label: label, Zero: k == 0})
	}
}

func (f *forest) addLegend() {
	add := func(thick int, text string) {
		f.Legend = append(f.Legend, forestText{Text: text, Y: f.next, LineY: f.next - 4, Thick: thick})
		f.next += 18
	}
	kind := "valid for a single look at the planned end"
	if f.results.Methodology == string(stats.MethodologyBayesian) {
		kind = "of the posterior"
	}
	if f.results.CompareMetric == nil {
		kind = "of the rate"
	}
	add(5, fmt.Sprintf("%d %% interval %s", f.results.SignificanceLevel, kind))
	if name := sequenceName(f.results); name != "" {
		add(1, fmt.Sprintf("%d %% %s; arrows point beyond the scale", f.results.SignificanceLevel, name))
	}
}

// sequenceName returns the name of the intervals of the last look, or "" if there are none.
func sequenceName(r *result.Report) string {
	for i := range r.Variations {
		if c := r.Variations[i].Comparison; c != nil && c.Sequential != nil && c.Sequential.Look != nil {
			return fmt.Sprintf("interval of look %d", *c.Sequential.Look)
		}
	}
	return ""
}
