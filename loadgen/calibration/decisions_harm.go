package calibration

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"

	"golang.org/x/sync/errgroup"

	"lifthouse/engine/effects"
)

// sizesWithZeros are the numbers of campaigns of the programmes in which it is counted what does harm or nothing.
var sizesWithZeros = []int{8, 30, 60, 300}

// orZero returns effects that are exactly 0 with a probability, and otherwise those of draw.
func orZero(probability float64, draw func(*rand.Rand) float64) func(*rand.Rand, int, int, float64) float64 {
	return func(r *rand.Rand, _, _ int, _ float64) float64 {
		if r.Float64() < probability {
			return 0
		}
		return draw(r)
	}
}

// populationsWithZeros have many effects of exactly 0, as the ideas of people have. The last two have none.
var populationsWithZeros = []struct {
	trueEffects
	least, most float64 // stated / true number that do harm or nothing
}{
	{trueEffects{"all zero", false, orZero(1, nil)}, .4, 1},
	{trueEffects{"95 % zero, 5 % 1 or -1", false, orZero(.95, func(r *rand.Rand) float64 {
		return float64(2*r.IntN(2) - 1)
	})}, .6, 1.2},
	{trueEffects{"80 % zero, 20 % sd 1/2", false, orZero(.8, halfNormal)}, .6, 1.3},
	{trueEffects{"50 % zero, 50 % sd 1/2", false, orZero(.5, halfNormal)}, .5, 2},
	{trueEffects{"50 % zero, 50 % 1/2", false, orZero(.5, func(*rand.Rand) float64 { return .5 })}, .4, 4},
	{trueEffects{"50 % zero, 50 % 1", false, orZero(.5, func(*rand.Rand) float64 { return 1 })}, .2, 2.5},
	{trueEffects{"normal, sd 1/4", false, normalEffects(.25, 0)}, 1, 2.8},
	{trueEffects{hyperprior, false, func(r *rand.Rand, _, _ int, tau float64) float64 {
		return r.NormFloat64() * tau
	}}, .85, 1.25},
}

// halfNormal draws an effect with a standard deviation of half the minimum effect.
func halfNormal(r *rand.Rand) float64 { return r.NormFloat64() / 2 }

// HarmRow compares how many shipped variations are stated to do harm or nothing, and how many do.
type HarmRow struct {
	Population    string
	Size          int
	Shipped       float64 // variations of a programme
	Stated, True  float64 // do harm or nothing, of these
	Single, Total float64 // as of ProgrammeRow
	// Of the programmes with several shipped variations of which less than half of one is stated to do harm or nothing, the
	// share in which none does; NaN: there is no such programme.
	None   float64
	Misses []string
}

// RunHarm simulates programmes with true effects of exactly 0. It takes a third of the campaigns of RunProgrammes.
func RunHarm(ctx context.Context, o *ProgrammeOptions) ([]HarmRow, error) {
	rows := make([]HarmRow, len(populationsWithZeros)*len(sizesWithZeros))
	critical := criticalValues()
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(max(o.Workers, 1))
	for k := range rows {
		of := &populationsWithZeros[k/len(sizesWithZeros)]
		size := sizesWithZeros[k%len(sizesWithZeros)]
		work.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			random := rand.New(rand.NewPCG(o.Seed, uint64(size))) //nolint:gosec // a simulation
			rows[k] = simulateHarm(random, &of.trueEffects, size, max(o.Campaigns/3/size, 1), critical)
			rows[k].checkBars(of.least, of.most)
			return nil
		})
	}
	return rows, work.Wait()
}

// simulateHarm simulates a number of programmes.
func simulateHarm(r *rand.Rand, of *trueEffects, size, programmes int, critical [4]float64) HarmRow {
	var shipped, small, covered, some, totals, lessThanHalf, none int
	var stated float64
	for range programmes {
		all, fit := drawProgramme(r, of, size, critical)
		truth := 0.0
		factors := make([]float64, size)
		own := 0
		ownSmall := 0
		ownStated := 0.0
		for i := range all {
			if !all[i].shipped {
				continue
			}
			e := fit.TrueEffect(i)
			truth += all[i].truth
			factors[i] = 1
			own++
			ownStated += e.Small
			countIf(&ownSmall, all[i].truth < effects.SmallPart)
			countIf(&covered, e.Lower <= all[i].truth && all[i].truth <= e.Upper)
		}
		shipped += own
		small += ownSmall
		stated += ownStated
		if own > 0 {
			some++
			e := fit.Total(factors)
			countIf(&totals, e.Lower <= truth && truth <= e.Upper)
		}
		if own > 1 && ownStated < .5 {
			lessThanHalf++
			countIf(&none, ownSmall == 0)
		}
	}
	n := float64(programmes)
	return HarmRow{
		Population: of.name, Size: size, Shipped: float64(shipped) / n, Stated: stated / n, True: float64(small) / n,
		Single: float64(covered) / float64(shipped), Total: float64(totals) / float64(some),
		None: float64(none) / float64(lessThanHalf),
	}
}

// checkBars compares what is stated with what is true.
func (r *HarmRow) checkBars(least, most float64) {
	if of := r.Stated / r.True; !(least <= of && of <= most) {
		r.Misses = append(r.Misses, fmt.Sprintf("stated / true %.2f, not %.2f to %.2f", of, least, most))
	}
}

// WriteHarm writes the rows as Markdown, and returns an error if a bar is missed.
func WriteHarm(w io.Writer, rows []HarmRow) error {
	var cells []sizedRow
	var missed []string
	for _, r := range rows {
		none := "–"
		if !math.IsNaN(r.None) {
			none = fmt.Sprintf("%.2f", r.None)
		}
		cells = append(cells, sizedRow{r.Population, fmt.Sprintf("**%.2f / %.2f** of %.2f; %.2f, %.2f; %s",
			r.Stated, r.True, r.Shipped, r.Single, r.Total, none)})
		missed = append(missed, namedMisses(r.Population, r.Size, r.Misses)...)
	}
	var text strings.Builder
	text.WriteString("\nHarm or nothing, of a programme: stated / true number, of how many shipped; share of the 90 % intervals that hold the " +
		"truth, of one shipped campaign and of the total; and, where several shipped and less than half of one is stated, the " +
		"share of programmes in which none does\n\n")
	writeBySize(&text, "true effects", sizesWithZeros, cells)
	return finishTables(w, &text, "bars of harm or nothing", missed)
}
