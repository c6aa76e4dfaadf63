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
	"strconv"
	"strings"
	"text/template"

	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/wording"
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
	"px":  func(x float64) string { return fmt.Sprintf("%.1f", x) },
	"add": func(x, y int) int { return x + y },
}).Parse(forestSVG))

// The dimensions of a forest plot in pixels, and of its texts in characters. The other positions are in the template.
const (
	forestLeft    = 310 // of the scale
	forestRight   = 600
	forestHeight  = 26  // of a row
	forestLetters = 105 // of a line
	forestLabel   = 26
	forestTicks   = 6
)

// forestColours are colours that colour-blind readers can distinguish. Other verdicts have #59636e.
var forestColours = map[stats.Verdict]string{stats.VerdictBetter: "#0072b2", stats.VerdictWorse: "#b34700"}

// forest holds the data of the template. The y coordinate of a text is its baseline.
type forest struct {
	axis
	Summary, ValueHead    string
	Height, HeadY, Bottom int
	Lines, Legend         []forestText
	Ticks                 []forestTick
	Rows                  []forestRow
	results               *result.Report
}

type forestText struct {
	Text  string
	Y     int
	Bold  bool
	Thick int // of the line of a legend
}

type forestTick struct {
	X     float64
	Label string
	Zero  bool
}

type forestRow struct {
	Heading                                 bool
	Label, Visitors, Value, Verdict, Colour string
	Indent, Y                               int
	Bars                                    []forestBar
	Point                                   *float64
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
	estimate *stats.Effect
	look     *stats.Interval // interval of the last look
	verdict  judged          // of the comparison
}

// ForestPlot returns an SVG of the lifts and their intervals: of the report, and of each value of its dimension. If
// nothing is compared, it shows the goal conversion rates.
func ForestPlot(r *result.Report) ([]byte, error) {
	effects := collectEffects(r)
	f := &forest{results: r, ValueHead: "improvement", axis: newAxis(scaleEnds(effects), forestTicks)}
	if !r.Compares() {
		f.ValueHead = result.MetricInWords(query.GoalConversionRate)
	}
	if r.Conclusion != nil {
		f.Summary = r.Conclusion.Text
	} else {
		f.Summary = fmt.Sprintf("Totals of the variations of widget %d; nothing is compared.", r.WidgetID)
	}
	f.addHeading()
	f.addRows(effects)
	f.addTicks()
	f.addLegend()
	var svg bytes.Buffer
	err := forestTemplate.Execute(&svg, f)
	return svg.Bytes(), err
}

// scaleEnds returns what the scale covers: 0, all estimates and the intervals of their single tests. The intervals of
// looks may be wider.
func scaleEnds(effects []effect) []float64 {
	ends := []float64{0}
	for _, e := range effects {
		if e.estimate == nil {
			continue
		}
		reaching := []*float64{e.estimate.Value}
		if e.estimate.Interval != nil {
			reaching = append(reaching, e.estimate.Interval[:]...)
		}
		for _, x := range reaching {
			if x != nil {
				ends = append(ends, *x)
			}
		}
	}
	return ends
}

// addHeading adds the summary and the subtitle, and sets the position of the heads of the columns.
func (f *forest) addHeading() {
	y := 34
	addLines := func(text string, letters, height int, isBold bool) {
		for _, line := range wrapText(text, letters) {
			f.Lines = append(f.Lines, forestText{Text: line, Y: y, Bold: isBold})
			y += height
		}
	}
	addLines(f.Summary, forestLetters, 20, true)
	addLines(ReportSubtitle(f.results), forestLetters+forestLetters/7, 18, false)
	f.HeadY = y + 16
}

// addRows adds the rows below the heads of the columns, and sets the position of the scale.
func (f *forest) addRows(effects []effect) {
	y := f.HeadY + 10
	for _, e := range effects {
		f.Rows = append(f.Rows, f.newRow(e, y+forestHeight/2))
		y += forestHeight
	}
	f.Bottom = y + 4
}

// addTicks adds the ticks of the scale.
func (f *forest) addTicks() {
	decimals := min(max(0, -int(math.Floor(math.Log10(f.step)+1e-9))-2), 9) // of multiples of the step in per cent
	for _, x := range f.ticks() {
		label := wording.FormatPercent(x, decimals, x != 0 && f.results.Compares())
		f.Ticks = append(f.Ticks, forestTick{X: f.positionX(x), Label: label, Zero: x == 0})
	}
}

// addLegend adds what the intervals are, below the scale, and sets the height of the plot.
func (f *forest) addLegend() {
	r := f.results
	kind := "valid for a single look at the planned end"
	switch {
	case !r.Compares():
		kind = "of the rate"
	case r.Methodology == string(stats.MethodologyBayesian):
		kind = "of the posterior"
	}
	const distance, lineHeight = 46, 18
	f.Legend = []forestText{
		{Text: fmt.Sprintf("%d %% interval %s", r.SignificanceLevel, kind), Y: f.Bottom + distance, Thick: 5},
	}
	at := slices.IndexFunc(r.Variations, func(v result.VariationResults) bool { return lookOf(v.Comparison) != nil })
	if at >= 0 {
		f.Legend = append(f.Legend, forestText{
			Text: fmt.Sprintf("%d %% interval of look %d; arrows point beyond the scale", r.SignificanceLevel,
				*lookOf(r.Variations[at].Comparison)),
			Y: f.Bottom + distance + lineHeight, Thick: 1,
		})
	}
	f.Height = f.Bottom + distance + lineHeight*len(f.Legend)
}

// ReportSubtitle returns one line that describes the report: subject, goal, metric, method, size and time.
func ReportSubtitle(r *result.Report) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch {
	case r.CampaignID != 0:
		add("Campaign %s", cmp.Or(r.CampaignKey, strconv.FormatInt(r.CampaignID, 10)))
	case r.ExperimentID != 0:
		add("Widget %d, experiment %d", r.WidgetID, r.ExperimentID)
	default:
		add("Widget %d", r.WidgetID)
	}
	if r.Goal != nil {
		add("goal %s", r.Goal.Name)
	}
	if r.Compares() {
		add("%s", r.MetricInWords())
	}
	add("%s, %d %%", r.Methodology, r.SignificanceLevel)
	add("%s visitors", wording.FormatCount(r.Totals.Visitors))
	for _, name := range slices.Sorted(maps.Keys(r.Filters)) {
		values, several := r.Filters[name].([]string)
		if !several {
			values = []string{fmt.Sprint(r.Filters[name])}
		}
		words := make([]string, len(values))
		for i, value := range values {
			words[i] = cmp.Or(value, "not set")
		}
		add("%s: %s", name, strings.Join(words, ", "))
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
			case !r.Compares():
				e.estimate = &stats.Effect{Value: rate.Value, Interval: rate.Interval, Reason: rate.Reason}
			case v.Comparison == nil:
				continue
			default:
				e.estimate = &v.Comparison.Improvement
				e.verdict = judged{v.Comparison.VerdictInWords(), c.ConclusiveVerdict(v.Comparison)}
				if v.Comparison.Sequential != nil && v.Comparison.Bayesian == nil {
					e.look = v.Comparison.Sequential.Improvement
				}
			}
			effects = append(effects, e)
		}
	}
	heading := ""
	if r.Dimension != nil {
		heading = "All visitors"
	}
	add(heading, &r.Slice)
	for i := range r.Breakdown {
		add(r.Breakdown[i].Value, &r.Breakdown[i].Slice)
	}
	return effects
}

// newRow returns a row with its middle at y.
func (f *forest) newRow(e effect, y int) forestRow {
	row := forestRow{
		Heading: e.estimate == nil, Label: shortenText(e.label, forestLabel), Visitors: wording.FormatCount(e.visitors),
		Colour: cmp.Or(forestColours[e.verdict.verdict], "#59636e"), Y: y, Value: none, Verdict: e.verdict.words,
	}
	if row.Heading {
		return row
	}
	if f.results.Dimension != nil {
		row.Indent = 14
	}
	f.addBar(&row, e.look, 1)
	f.addBar(&row, e.estimate.Interval, 5)
	if value := e.estimate.Value; value != nil {
		x := f.positionX(*value)
		write := func(x float64) string {
			if !f.results.Compares() {
				return wording.FormatValue(x, e.estimate.Interval, true)
			}
			return wording.FormatLift(x, e.estimate.Interval)
		}
		row.Point = &x
		row.Value = write(*value) + "  " + wording.RangeInWords(e.estimate.Interval, write)
	}
	return row
}

// addBar adds an interval. An arrow marks an end that is unbounded or outside the scale.
func (f *forest) addBar(row *forestRow, interval *stats.Interval, thick int) {
	if interval == nil || interval[0] == nil && interval[1] == nil {
		return
	}
	bar := forestBar{
		From: forestLeft, To: forestRight, OpenLeft: true, OpenRight: true, Y: row.Y, Thick: thick, Colour: row.Colour,
	}
	if interval[0] != nil && *interval[0] >= f.low {
		bar.From = f.positionX(*interval[0])
		bar.OpenLeft = false
	}
	if interval[1] != nil && *interval[1] <= f.high {
		bar.To = f.positionX(*interval[1])
		bar.OpenRight = false
	}
	row.Bars = append(row.Bars, bar)
}

func (f *forest) positionX(value float64) float64 {
	share := (value - f.low) / (f.high - f.low)
	return forestLeft + min(max(share, 0), 1)*(forestRight-forestLeft)
}

// axis is the scale of a plot. scale.js of the page computes the same; testdata/formats.json has examples.
type axis struct{ low, high, step float64 }

// newAxis returns a scale that covers the numbers, with a margin at both ends, and about as many ticks.
func newAxis(numbers []float64, ticks float64) axis {
	a := axis{low: slices.Min(numbers), high: slices.Max(numbers)}
	if a.low == a.high {
		a.low, a.high = a.low-0.5, a.high+0.5
	}
	margin := 0.06 * (a.high - a.low)
	a.low, a.high = a.low-margin, a.high+margin
	rough := (a.high - a.low) / ticks
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	a.step = 10 * power
	for _, times := range []float64{5, 2, 1} {
		if times*power >= rough {
			a.step = times * power
		}
	}
	return a
}

// ticks returns the multiples of the step.
func (a axis) ticks() []float64 {
	var all []float64
	for k := math.Ceil(a.low/a.step) + 0; k*a.step <= a.high; k++ { // + 0: not minus zero
		all = append(all, k*a.step)
	}
	return all
}
