package stats_test

import (
	"fmt"
	"math/big"

	"lifthouse/stats"
)

// Two variations with their numbers of visitors and converted visitors.
func ExampleCompare() {
	control := stats.Rate{Visitors: 11927, Converted: 716}
	treatment := stats.Rate{Visitors: 12010, Converted: 900}
	comparisons := stats.Compare(control, []stats.Sample{treatment},
		stats.Options{SignificanceLevel: 95, Methodology: stats.MethodologyFrequentist})
	c := comparisons[0]
	fmt.Printf("lift %+.1f %%, interval [%+.1f %%, %+.1f %%]\n", 100**c.Lift.Value, 100**c.Lift.Interval[0],
		100**c.Lift.Interval[1])
	fmt.Printf("p = %.2g, verdict %s\n", *c.Frequentist.PValue, c.Verdict)
	// Output:
	// lift +24.8 %, interval [+13.5 %, +37.2 %]
	// p = 4.3e-06, verdict better
}

// The same visitors with the Bayesian methodology.
func ExampleCompare_bayesian() {
	control := stats.Rate{Visitors: 10000, Converted: 500}
	treatment := stats.Rate{Visitors: 9950, Converted: 430}
	comparisons := stats.Compare(control, []stats.Sample{treatment}, stats.Options{
		SignificanceLevel: 90,
		Methodology:       stats.MethodologyBayesian, Prior: &stats.Prior{StandardDeviation: 0.05},
	})
	fmt.Printf("chance to beat control %.2f %%\n", 100**comparisons[0].Bayesian.ChanceToBeatControl)
	// Output:
	// chance to beat control 7.97 %
}

// Revenue per visitor from sums over visitors.
func ExampleSums_Mean() {
	amounts := stats.Sums{Sum: big.NewInt(60), Squares: big.NewInt(10*10 + 20*20 + 30*30)}
	mean := amounts.Mean(4, 1) // one of the four visitors bought nothing
	fmt.Printf("mean %.1f, variance %.2f\n", mean.Mean, mean.Variance)
	// Output:
	// mean 15.0, variance 166.67
}

// Two weekly looks at a campaign of four weeks.
func ExampleLookSequence() {
	var points []stats.LookPoint
	var strata [][]stats.Stratum
	for week, sums := range [][2]stats.Rate{{{4000, 200}, {4000, 240}}, {{8000, 400}, {8000, 500}}} {
		strata = append(strata, []stats.Stratum{{Control: sums[0], Treatment: sums[1]}})
		points = append(points,
			stats.LookPoint{Tau: float64(week+1) / 4, Information: stats.LookInformation(strata[week], true)})
	}
	looks := stats.NewLookDesign(0.05, []float64{1, 1}).NewSequence(points, nil)
	for week := range strata {
		r := looks.AnalyzeLook(week, strata[week], true)
		fmt.Printf("week %d: z = %.2f, critical value %.2f, p = %.2g, significant %v\n", week+1, *r.Z, *r.Critical, *looks.PValue(week, r), r.Significant)
	}
	// Output:
	// week 1: z = 1.96, critical value 3.17, p = 1, significant false
	// week 2: z = 3.43, critical value 2.84, p = 0.0068, significant true
}

// The required sample size for a lift of 20 % with a power of 80 % at one of four looks.
func ExampleSampleSize() {
	plan := stats.SamplePlan{
		Control: stats.Rate{Visitors: 1000, Converted: 50}, Shares: []float64{1, 1}, Looks: 4,
		Power: 0.8,
	}
	size, _ := stats.NewSampleSize(plan, stats.NewLookDesign(0.05, plan.Shares))
	progress := size.ProgressTowards(0.2, 2000, 400)
	fmt.Printf("%d visitors required, progress %.0f %%\n", *progress.RequiredVisitors, 100**progress.Progress)
	// Output:
	// 16934 visitors required, progress 12 %
}

// A split of 50:50 that lost visitors of one variation.
func ExampleSampleRatioMismatch() {
	half := stats.Split{Control: 50, Variations: []float64{50}}
	check := stats.SampleRatioMismatch([]stats.SharePeriod{{Split: half, Observed: []int64{10000, 9300}}})
	fmt.Printf("mismatch %v, p = %.2g\n", check.Mismatch, *check.PValue)
	// Output:
	// mismatch true, p = 5.9e-05
}
