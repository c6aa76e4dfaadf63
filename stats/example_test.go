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
	comparisons := stats.Compare(control, []stats.Sample{treatment}, stats.Options{SignificanceLevel: 95, Methodology: stats.MethodologyFrequentist})
	c := comparisons[0]
	fmt.Printf("lift %+.1f %%, interval [%+.1f %%, %+.1f %%]\n", 100**c.Lift.Value, 100**c.Lift.Interval.Lower, 100**c.Lift.Interval.Upper)
	fmt.Printf("p = %.2g, always-valid p = %.2g, verdict %s\n", *c.Frequentist.PValue, *c.Sequential.PValue, c.Verdict)
	// Output:
	// lift +24.8 %, interval [+13.5 %, +37.2 %]
	// p = 4.3e-06, always-valid p = 0.0024, verdict better
}

// The same visitors with the Bayesian methodology.
func ExampleCompare_bayesian() {
	control := stats.Rate{Visitors: 10000, Converted: 500}
	treatment := stats.Rate{Visitors: 9950, Converted: 430}
	comparisons := stats.Compare(control, []stats.Sample{treatment}, stats.Options{SignificanceLevel: 90, Methodology: stats.MethodologyBayesian})
	fmt.Printf("chance to beat control %.2f %%\n", 100**comparisons[0].Bayesian.ChanceToBeatControl)
	// Output:
	// chance to beat control 1.15 %
}

// Revenue per visitor from sums over visitors.
func ExampleSums_Mean() {
	amounts := stats.Sums{Sum: big.NewInt(60), Squares: big.NewInt(10*10 + 20*20 + 30*30)}
	mean := amounts.Mean(4, 1) // one of the four visitors bought nothing
	fmt.Printf("mean %.1f, variance %.2f\n", mean.Mean, mean.Variance)
	// Output:
	// mean 15.0, variance 166.67
}

// The required sample size for a lift of 20 % with a power of 80 %.
func ExamplePower() {
	report := stats.Power(stats.Plan{
		Control: stats.Rate{Visitors: 1000, Converted: 50}, Shares: []float64{1, 1}, Visitors: 2000,
		MinimumEffect: 0.2, Power: 0.8, VisitorsPerDay: 400,
	}, stats.Options{SignificanceLevel: 95})
	fmt.Printf("%d visitors required, progress %.0f %%\n", *report.RequiredVisitors, 100**report.Progress)
	// Output:
	// 16310 visitors required, progress 12 %
}

// A split of 50:50 that lost visitors of one variation.
func ExampleSampleRatio() {
	check := stats.SampleRatio([]int64{10000, 9500}, stats.Split{Control: 50, Variations: []float64{50}})
	fmt.Printf("mismatch %v, p = %.2g\n", check.Mismatch, *check.PValue)
	// Output:
	// mismatch true, p = 0.00034
}
