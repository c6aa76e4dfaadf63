package rollup

import (
	"context"
	"errors"
)

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

// Compact writes the rows of visitors of all subjects anew.
func (s *Refresher) Compact(ctx context.Context) error {
	return s.exclusively(ctx, ctx, func(ctx context.Context) error {
		all, err := s.candidates(ctx)
		for i := range all {
			if d := &all[i]; err == nil && !d.mustRebuild() {
				err = s.compact(ctx, d)
			}
		}
		return errors.Join(err, s.index.Refresh(ctx))
	})
}
