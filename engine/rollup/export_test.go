package rollup

// MostFrequent has so many values lie apart in generations to be made.
func (s *Refresher) MostFrequent(values int) { s.maxFrequent = values }
