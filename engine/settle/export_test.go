package settle

// MostFrequent has so many values lie apart in generations to be made.
func (s *Settler) MostFrequent(values int) { s.mostFrequent = values }
