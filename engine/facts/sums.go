package facts

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"lifthouse/engine/fold"
	"lifthouse/engine/moments"

	"golang.org/x/sync/errgroup"
)

// sums adds up the rows of a report.
type sums struct {
	answer
	tops [][]string // most frequent values of each attribute of the dimension
	top  []string   // values, or pairs of values, in the order of their ranks
	of   map[key]moments.Moments
}

// setTops sets the values of each attribute whose visitors are counted apart.
func (s *sums) setTops(tops [][]string) {
	s.tops = tops
	switch len(tops) {
	case 0:
		s.top = nil
	case 1:
		s.top = tops[0]
	default:
		s.top = []string{}
		for _, first := range tops[0] {
			for _, second := range tops[1] {
				s.top = append(s.top, moments.JoinValues(first, second))
			}
		}
	}
}

// key is the key of sums.
type key struct {
	goal   int64 // only of several goals
	bucket int64
	rank   uint16 // of the value of the dimension, from 1; 0: another value, or no dimension
	// crossed is the bucket of a multi-exposed visitor's first view of another variation, if the plan reads crossings.
	// In a report without a series, it is crossedLater, or 0.
	crossed int64
	split   string // value of a split
	moments.GroupKey
}

// crossedLater marks multi-exposed visitors who saw another variation after the end of the window only.
const crossedLater = -1

func (x answer) newSums() *sums { return &sums{answer: x, of: map[key]moments.Moments{}} }

// addGoal adds the sums of one of several goals; 0: those of visitors.
func (s *sums) addGoal(several *sums, goal int64) {
	for at, m := range several.of {
		if at.goal == goal {
			at.goal = 0
			s.of[at] = s.of[at].Merge(m)
		}
	}
}

// countOnServers counts some sums of each server with read, and adds them.
func (s *sums) countOnServers(
	ctx context.Context, wanted factSums, read func(*counting, context.Context, factSums) error,
) error {
	all := s.newCountings(s.tops)
	work, ctx := errgroup.WithContext(ctx)
	for _, c := range all {
		work.Go(func() error { return read(c, ctx, wanted) })
	}
	if err := work.Wait(); err != nil {
		return err
	}
	for _, counted := range all {
		for at, m := range counted.of {
			s.of[at] = s.of[at].Merge(m)
		}
	}
	return nil
}

// bucketSteps returns the sums by bucket.
func (s *sums) bucketSteps() (steps []moments.Step) {
	for at, m := range s.of {
		if !m.IsEmpty() {
			row := moments.GroupMoments{GroupKey: at.GroupKey, Others: s.top != nil && at.rank == 0, Moments: m}
			if at.rank != 0 {
				row.Dimension = s.top[at.rank-1]
			}
			steps = append(steps, moments.Step{Bucket: at.bucket, Crossed: at.crossed, GroupMoments: row})
		}
	}
	slices.SortFunc(steps, func(a, b moments.Step) int { return cmp.Compare(a.Bucket, b.Bucket) })
	return steps
}

// reportRows returns the rows of the whole report that have visitors, and those of the breakdown: rows of the most
// frequent values, and rows for all other values, which are the whole report minus these rows. They have no visitors of
// the recent days. It also counts the automated visitors of the subject and the others, by variation.
func (s *sums) reportRows() *moments.Rows { //nolint:funlen,gocognit,gocyclo // the rows of one report
	stored := s.stored
	if stored.Events == 0 {
		stored = Stored{}
	}
	found := &moments.Rows{
		First: stored.First, Through: stored.Ingested, Newest: stored.Newest, Outliers: s.outliers,
		Cap: s.limit, Automated: map[int64]moments.Automated{}, Complete: s.stored.Complete,
	}
	for i := range s.states {
		for of, cell := range s.states[i].all {
			text, isAutomated := strings.CutSuffix(strings.TrimSuffix(of.Variation, fold.MultiExposed), fold.Automated)
			id, err := strconv.ParseInt(text, 10, 64)
			if of.Goal != 0 || err != nil {
				continue
			}
			n := found.Automated[id]
			visitors := cell.CountAt(fold.Visitors)
			if isAutomated {
				n.Visitors += visitors
			} else {
				n.Others += visitors
			}
			found.Automated[id] = n
		}
	}

	// The rows of the whole report, and those of the values of a dimension.
	sorted := func(of map[moments.GroupKey]moments.Moments) []moments.GroupMoments {
		rows := []moments.GroupMoments{}
		for _, at := range slices.SortedFunc(maps.Keys(of), func(a, b moments.GroupKey) int {
			byVariation := cmp.Compare(a.VariationID, b.VariationID)
			return cmp.Or(byVariation, cmp.Compare(a.Dimension, b.Dimension), cmp.Compare(a.Period, b.Period))
		}) {
			if m := of[at]; m.Visitors != 0 || m.Recent != 0 {
				rows = append(rows, moments.GroupMoments{GroupKey: at, Moments: m})
			}
		}
		return rows
	}
	all, byValue := map[moments.GroupKey]moments.Moments{}, map[moments.GroupKey]moments.Moments{}
	for at, m := range s.of {
		all[at.GroupKey] = all[at.GroupKey].Merge(m)
		if at.rank != 0 {
			at.Dimension = s.top[at.rank-1]
			byValue[at.GroupKey] = byValue[at.GroupKey].Merge(m)
		}
	}
	found.Whole = sorted(all)
	found.Slices = found.Whole
	if s.top == nil {
		return found
	}

	// The most frequent values of them, and the others.
	visitors := map[string]int64{}
	ranked := sorted(byValue)
	for i := range ranked {
		ranked[i].Recent = 0
		if !ranked[i].ExposedBefore {
			visitors[ranked[i].Dimension] += ranked[i].MatureVisitors()
		}
	}
	values := moments.MostVisited(visitors)
	values = values[:min(len(values), s.Top)]
	ranked = slices.DeleteFunc(ranked, func(r moments.GroupMoments) bool {
		return !slices.Contains(values, r.Dimension)
	})
	kept := len(ranked)
	for _, others := range found.Whole {
		others.Others = true
		others.Recent = 0
		for i := range ranked[:kept] {
			of := ranked[i].GroupKey
			of.Dimension = ""
			if of == others.GroupKey {
				others.Moments = others.Subtract(ranked[i].Moments)
			}
		}
		if others.Visitors != 0 {
			ranked = append(ranked, others)
		}
	}
	if !slices.ContainsFunc(ranked[kept:], func(r moments.GroupMoments) bool { return !r.ExposedBefore }) {
		ranked = ranked[:kept] // no other value has visitors of the window
	}
	found.Slices = ranked
	return found
}
