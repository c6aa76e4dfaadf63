package rollup

// MostFrequent sets the number of values in the frequent cubes of new
// generations.
func (s *Refresher) MostFrequent(values int) { s.maxFrequent = values }
