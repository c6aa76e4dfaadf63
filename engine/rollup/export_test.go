package rollup

// MostFrequent sets the number of values in the frequent cubes of new
// generations.
func (s *Refresher) MostFrequent(values int) { s.maxFrequent = values }

// CubeCount is the number of cubes.
var CubeCount = len(cubes)

// CubeAt returns the columns of attributes of a cube, and whether it groups by
// the day of the event.
func CubeAt(i int) (by []string, day bool) { return cubes[i].by, cubes[i].day }

// ReadStates returns the states of the complete generations.
var ReadStates = readStates
