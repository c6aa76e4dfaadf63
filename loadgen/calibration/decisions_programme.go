package calibration

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"lifthouse/engine/effects"
	"lifthouse/stats"
)

// ProgrammeOptions configure a simulation of programmes.
type ProgrammeOptions struct {
	Campaigns int // of each row
	Seed      uint64
	Workers   int
	Progress  func(done, all int)
}

// ProgrammeDefaults are the options of docs/benchmarks/programme.md.
var ProgrammeDefaults = ProgrammeOptions{Campaigns: 72_000, Seed: 7}

// sizesOfProgrammes are the numbers of campaigns of a programme.
var sizesOfProgrammes = []int{5, 8, 15, 30, 60}

// trueEffects draw the true effects of a programme, in minimum effects. i is the number of the campaign among n.
type trueEffects struct {
	name   string
	people bool // stop campaigns that look bad, and ship some without a winner
	draw   func(r *rand.Rand, i, n int, tau float64) float64
}

func normalEffects(sd, mean float64) func(*rand.Rand, int, int, float64) float64 {
	return func(r *rand.Rand, _, _ int, _ float64) float64 { return r.NormFloat64()*sd + mean }
}

var populationsOfEffects = []trueEffects{
	{"normal, sd 1/1.96", false, normalEffects(1/1.96, 0)},
	{"normal, sd 1/4", false, normalEffects(.25, 0)},
	{"normal, sd 1/8", false, normalEffects(.125, 0)},
	{"Student 3, sd 1/4", false, func(r *rand.Rand, _, _ int, _ float64) float64 {
		q := 0.0
		for range 3 {
			x := r.NormFloat64()
			q += x * x
		}
		return r.NormFloat64() / math.Sqrt(q/3) / math.Sqrt(3) / 4
	}},
	{"80 % zero, 20 % sd 1/2", false, func(r *rand.Rand, _, _ int, _ float64) float64 {
		if r.Float64() < .8 {
			return 0
		}
		return r.NormFloat64() / 2
	}},
	{"sd falls from 1/2 to 1/10", false, func(r *rand.Rand, i, n int, _ float64) float64 {
		return r.NormFloat64() * (.5 - .4*float64(i)/float64(n-1))
	}},
	{"sd 1/4, mean -.1", false, normalEffects(.25, -.1)},
	{"sd 1/4, mean +.1", false, normalEffects(.25, .1)},
	{hyperprior, false, func(r *rand.Rand, _, _ int, tau float64) float64 { return r.NormFloat64() * tau }},
	{"sd 1/4, people stop at z < -1, ship 3 in 10", true, normalEffects(.25, 0)},
}

const hyperprior = "website drawn from the hyperprior"

// estimates of a row, in this order.
var estimateNames = []string{"observed", "James-Stein (GrowthBook)", "MAP (Datadog)", "Lifthouse"}

// ProgrammeRow has the results of one population and one size.
type ProgrammeRow struct {
	Population string
	Size       int
	Stated     [4]float64 // stated / true worth of what was shipped, by estimate
	Error      [4]float64 // root of the mean squared error of the total, relative to that of observed
	Single     float64    // share of the 90 % intervals of shipped campaigns that cover the true effect
	Total      float64    // of the intervals of totals
	Misses     []string   // bars of the specification that are missed
}

// RunProgrammes simulates programmes of campaigns through the looks of the program, and compares what estimates state with
// what is true of the shipped variations.
func RunProgrammes(ctx context.Context, o *ProgrammeOptions) ([]ProgrammeRow, error) {
	rows := make([]ProgrammeRow, len(populationsOfEffects)*len(sizesOfProgrammes))
	critical := criticalValues()
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(max(o.Workers, 1))
	var done atomic.Int64
	for k := range rows {
		of := &populationsOfEffects[k/len(sizesOfProgrammes)]
		size := sizesOfProgrammes[k%len(sizesOfProgrammes)]
		work.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			random := rand.New(rand.NewPCG(o.Seed, uint64(size))) //nolint:gosec // a simulation
			rows[k] = simulateProgrammes(random, of, size, o.Campaigns, critical)
			o.Progress(int(done.Add(1)), len(rows))
			return nil
		})
	}
	return rows, work.Wait()
}

// driftAtPlan is the mean of Z at the end of a plan of four looks that finds the minimum effect with power .8.
const driftAtPlan = 2.8539

// criticalValues returns the bounds of four equal looks at level 95.
func criticalValues() (c [4]float64) {
	points := make([]stats.LookPoint, len(c))
	strata := make([][]stats.Stratum, len(c))
	for k := range c {
		n := int64(100_000 * (k + 1))
		rate := stats.Rate{Visitors: n, Converted: n / 20}
		strata[k] = []stats.Stratum{{Control: rate, Treatment: rate, SmallerShare: .5}}
		points[k] = stats.LookPoint{Tau: float64(k+1) / 4, Information: stats.LookInformation(strata[k], true)}
	}
	sequence := stats.NewLookDesign(.05, []float64{50, 50}).NewSequence(points, nil)
	for k := range c {
		c[k] = *sequence.AnalyzeLook(k, strata[k], true).Critical
	}
	return c
}

// programmeCampaign is a simulated campaign.
type programmeCampaign struct {
	truth   float64
	effect  stats.PooledEffect
	shipped bool
}

// runCampaign draws the looks of a campaign with a true effect, whose plan has half to twice the required sample.
func runCampaign(r *rand.Rand, truth float64, people bool, critical [4]float64) programmeCampaign {
	drift := driftAtPlan * math.Sqrt(math.Exp((r.Float64()*2-1)*math.Ln2))
	sum := 0.0
	for k, c := range critical {
		sum += r.NormFloat64() * .5
		t := float64(k+1) / 4
		z := (sum + truth*drift*t) / math.Sqrt(t)
		effect := stats.PooledEffect{Value: z / (math.Sqrt(t) * drift), StandardError: 1 / (math.Sqrt(t) * drift)}
		stops := math.Abs(z) >= c
		if people && k > 0 && z < -1 {
			return programmeCampaign{truth, effect, false}
		}
		if stops || k == len(critical)-1 {
			shipped := stops && z > 0
			if people && !stops && z > .5 {
				shipped = r.Float64() < .3
			}
			return programmeCampaign{truth, effect, shipped}
		}
	}
	panic("unreachable")
}

// drawProgramme draws the campaigns of a programme, and returns them with their fit.
func drawProgramme(
	r *rand.Rand, of *trueEffects, size int, critical [4]float64,
) (all []programmeCampaign, fit *effects.Fit) {
	tau := .15 * math.Exp(r.NormFloat64())
	var pooled [][]stats.PooledEffect
	for i := range size {
		c := runCampaign(r, of.draw(r, i, size, tau), of.people, critical)
		all = append(all, c)
		pooled = append(pooled, []stats.PooledEffect{c.effect})
	}
	return all, effects.NewFit(1, pooled)
}

func simulateProgrammes(r *rand.Rand, of *trueEffects, size, campaigns int, critical [4]float64) ProgrammeRow {
	var tally programmeTally
	for range campaigns / size {
		all, fit := drawProgramme(r, of, size, critical)
		tally.addProgramme(all, fit)
	}
	row := tally.newRow()
	row.Population = of.name
	row.Size = size
	row.checkBars()
	return row
}

// programmeTally has the sums over the programmes of a row, by estimate.
type programmeTally struct {
	stated, squares  [4]float64
	truths           float64
	shipped, covered int // campaigns
	some, totals     int // programmes with a shipped campaign, and those whose interval covers the true total
}

// addProgramme adds a programme: its campaigns and their fit.
func (t *programmeTally) addProgramme(all []programmeCampaign, fit *effects.Fit) {
	truth := 0.0
	count := 0
	factors := make([]float64, len(all))
	for i := range all {
		if all[i].shipped {
			truth += all[i].truth
			factors[i] = 1
			count++
		}
	}
	var sums [4]float64
	for k, means := range [][]float64{observedEffects(all), jamesStein(all), maximumPosterior(all)} {
		for i := range all {
			sums[k] += factors[i] * means[i]
		}
	}
	sums[3] = t.addShipped(all, fit)
	t.truths += truth
	for k := range sums {
		miss := sums[k] - truth
		t.stated[k] += sums[k]
		t.squares[k] += miss * miss
	}
	if count > 0 {
		t.some++
		if e := fit.Total(factors); e.Lower <= truth && truth <= e.Upper {
			t.totals++
		}
	}
}

// addShipped adds the shipped campaigns of a programme, and returns the sum of their expected effects.
func (t *programmeTally) addShipped(all []programmeCampaign, fit *effects.Fit) (expected float64) {
	for i := range all {
		if !all[i].shipped {
			continue
		}
		e := fit.TrueEffect(i)
		expected += e.Mean
		t.shipped++
		if e.Lower <= all[i].truth && all[i].truth <= e.Upper {
			t.covered++
		}
	}
	return expected
}

// newRow returns the results of the programmes.
func (t *programmeTally) newRow() ProgrammeRow {
	row := ProgrammeRow{
		Single: float64(t.covered) / float64(t.shipped),
		Total:  float64(t.totals) / float64(t.some),
	}
	for k := range t.stated {
		row.Stated[k] = t.stated[k] / t.truths
		row.Error[k] = math.Sqrt(t.squares[k] / t.squares[0])
	}
	return row
}

// checkBars compares a row with the bars.
func (r *ProgrammeRow) checkBars() {
	miss := func(what string, value, low, high float64) {
		if !(low <= value && value <= high) {
			r.Misses = append(r.Misses, fmt.Sprintf("%s %.3f, not %.2f to %.2f", what, value, low, high))
		}
	}
	inf := math.Inf(1)
	ours := r.Stated[3]
	switch {
	case r.Population == hyperprior:
		miss("stated / true", ours, .95, 1.06)
		miss("total", r.Total, .88, .96)
	case r.Population == "normal, sd 1/4" && r.Size >= 15:
		miss("stated / true", ours, .92, 1.12)
	}
	if r.Stated[0] > 3 {
		miss("share of the exaggeration", ours/r.Stated[0], 0, .4)
	}
	miss("total", r.Total, .75, inf)
	miss("single", r.Single, .79, inf)
	miss("error relative to MAP's", r.Error[3]/r.Error[2], 0, 1.15)
}

func observedEffects(all []programmeCampaign) []float64 {
	means := make([]float64, len(all))
	for i := range all {
		means[i] = all[i].effect.Value
	}
	return means
}

// jamesStein returns GrowthBook's estimates (its file experiment impact, commit 00fa65f1), with the positive part, towards 0: one
// standard error, that of the largest experiment, for all.
func jamesStein(all []programmeCampaign) []float64 {
	least := math.Inf(1)
	squares := 0.0
	for i := range all {
		e := &all[i].effect
		least = math.Min(least, e.StandardError)
		squares += e.Value * e.Value
	}
	keep := math.Max(0, 1-float64(len(all)-2)*least*least/squares)
	means := observedEffects(all)
	for i := range means {
		means[i] *= keep
	}
	return means
}

// maximumPosterior returns Datadog's estimates (cumulative_impact.md, 2adb67d0): normal effects of lifts that are rescaled
// to mean 0 and variance 1, mu ~ N(0, 1), tau half-Cauchy with scale .25, maximised over mu and ln tau.
func maximumPosterior(all []programmeCampaign) []float64 {
	n := float64(len(all))
	mean := 0.0
	spread := 0.0
	for i := range all {
		mean += all[i].effect.Value / n
	}
	for i := range all {
		d := all[i].effect.Value - mean
		spread += d * d / (n - 1)
	}
	spread = math.Sqrt(spread)
	best := math.Inf(-1)
	bestMu := 0.0
	bestTau := 0.0
	const taus, least, most = 150, 1e-3, 10.
	for k := range taus {
		tau := least * math.Pow(most/least, float64(k)/(taus-1))
		a, b := 0.0, 1.0
		for i := range all {
			e := &all[i].effect
			v := tau*tau + e.StandardError*e.StandardError/(spread*spread)
			a, b = a+(e.Value-mean)/spread/v, b+1/v
		}
		mu := a / b
		l := -mu*mu/2 - math.Log1p(tau*tau/.0625) + math.Log(tau)
		for i := range all {
			e := &all[i].effect
			v := tau*tau + e.StandardError*e.StandardError/(spread*spread)
			d := (e.Value-mean)/spread - mu
			l -= d*d/(2*v) + math.Log(v)/2
		}
		if l > best {
			best = l
			bestMu = mu
			bestTau = tau
		}
	}
	mu := bestMu*spread + mean
	tau := bestTau * spread
	means := observedEffects(all)
	for i := range means {
		keep := tau * tau / (tau*tau + all[i].effect.StandardError*all[i].effect.StandardError)
		means[i] = mu + keep*(means[i]-mu)
	}
	return means
}

// sizedRow is the cell of a population and a size in a table.
type sizedRow struct{ population, cell string }

// writeBySize writes a Markdown table with a line for each population, and a column for each size of a programme. The
// rows have all sizes of a population, in order, and then those of the next one.
func writeBySize(to *strings.Builder, populations string, sizes []int, rows []sizedRow) {
	to.WriteString("| " + populations + " |")
	for _, size := range sizes {
		_, _ = fmt.Fprintf(to, " %d campaigns |", size)
	}
	to.WriteString("\n|---|" + strings.Repeat("---|", len(sizes)))
	for k, r := range rows {
		if k%len(sizes) == 0 {
			_, _ = fmt.Fprintf(to, "\n| %s |", r.population)
		}
		to.WriteString(" " + r.cell + " |")
	}
}

// finishTables writes tables, and returns an error if bars are missed.
func finishTables(w io.Writer, tables *strings.Builder, what string, missed []string) error {
	tables.WriteString("\n")
	if _, err := io.WriteString(w, tables.String()); err != nil {
		return err
	}
	if len(missed) > 0 {
		return fmt.Errorf("%s are missed:\n%s", what, strings.Join(missed, "\n"))
	}
	return nil
}

// namedMisses returns the missed bars of a population and a size.
func namedMisses(population string, size int, misses []string) (named []string) {
	for _, miss := range misses {
		named = append(named, fmt.Sprintf("%s, %d campaigns: %s", population, size, miss))
	}
	return named
}

// WriteProgrammes writes the rows as Markdown, and returns an error if a bar is missed.
func WriteProgrammes(w io.Writer, rows []ProgrammeRow) error {
	var worths, intervals []sizedRow
	var missed []string
	for _, r := range rows {
		worths = append(worths, sizedRow{r.Population, fmt.Sprintf("%.2f / %.2f / %.2f / **%.2f**",
			r.Stated[0], r.Stated[1], r.Stated[2], r.Stated[3])})
		intervals = append(intervals, sizedRow{r.Population, fmt.Sprintf("%.2f, %.2f; %.2f, %.2f",
			r.Single, r.Total, r.Error[2], r.Error[3])})
		missed = append(missed, namedMisses(r.Population, r.Size, r.Misses)...)
	}
	var text strings.Builder
	text.WriteString("Stated / true worth of what was shipped: " + strings.Join(estimateNames, " / ") + "\n\n")
	writeBySize(&text, "true effects, in minimum effects", sizesOfProgrammes, worths)
	text.WriteString("\n\nShare of the 90 % intervals that hold the truth: of one shipped campaign, of the total; and the root mean squared error of " +
		"the total relative to that of observed: MAP's, ours\n\n")
	writeBySize(&text, "true effects", sizesOfProgrammes, intervals)
	return finishTables(w, &text, "bars", missed)
}
