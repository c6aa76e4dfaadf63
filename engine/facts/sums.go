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
)

// sums adds up the rows of a report.
type sums struct {
	answer
	tops [][]string // most frequent values of each attribute of the dimension
	top  []string   // values, or pairs of values, in the order of their ranks
	of   counts
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

func (x answer) newSums() *sums { return &sums{answer: x, of: counts{}} }

// addGoal adds the sums of one of several goals; 0: those of visitors.
func (s *sums) addGoal(several *sums, goal int64) {
	for at, m := range several.of {
		if at.goal == goal {
			at.goal = 0
			s.of.addMoments(at, &m)
		}
	}
}

// readSums reads some sums on a server.
type readSums func(*counting, context.Context, factSums) (counts, error)

// countOnServers counts some sums of each server with read, and adds them.
func (s *sums) countOnServers(ctx context.Context, wanted factSums, read readSums) error {
	var parts []part
	for _, c := range s.newCountings(s.tops) {
		parts = append(parts, func(ctx context.Context) (counts, error) { return read(c, ctx, wanted) })
	}
	found, err := readParts(ctx, parts)
	s.of.addCounts(found)
	return err
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

// reportRows returns the rows of the whole report that have visitors, and those of the breakdown. It also counts the
// automated visitors of the subject and the others, by variation.
func (s *sums) reportRows() *moments.Rows {
	stored := s.stored
	if stored.Events == 0 {
		stored = Stored{}
	}
	found := &moments.Rows{
		First: stored.First, Through: stored.Ingested, Newest: stored.Newest, Outliers: s.outliers,
		Cap: s.limit, Automated: s.countAutomated(), Complete: s.stored.Complete,
	}
	all := groups{}
	byValue := groups{}
	for at, m := range s.of {
		all.addMoments(at.GroupKey, &m)
		if at.rank != 0 {
			at.Dimension = s.top[at.rank-1]
			byValue.addMoments(at.GroupKey, &m)
		}
	}
	found.Whole = all.sortRows()
	found.Slices = found.Whole
	if s.top != nil {
		found.Slices = s.sliceRows(found.Whole, byValue.sortRows())
	}
	return found
}

// countAutomated counts the automated visitors of the subject and the others, by variation.
func (s *sums) countAutomated() map[int64]moments.Automated {
	found := map[int64]moments.Automated{}
	for i := range s.states {
		for of, cell := range s.states[i].all {
			text, isAutomated := strings.CutSuffix(strings.TrimSuffix(of.Variation, fold.MultiExposed), fold.Automated)
			id, err := strconv.ParseInt(text, 10, 64)
			if of.Goal != 0 || err != nil {
				continue
			}
			n := found[id]
			visitors := cell.CountAt(fold.Visitors)
			if isAutomated {
				n.Visitors += visitors
			} else {
				n.Others += visitors
			}
			found[id] = n
		}
	}
	return found
}

// groups are sums by group of visitors.
type groups map[moments.GroupKey]moments.Moments

func (g groups) addMoments(at moments.GroupKey, m *moments.Moments) { g[at] = g[at].Merge(*m) }

// sortRows returns the groups that have visitors, in the order of their keys.
func (g groups) sortRows() []moments.GroupMoments {
	rows := []moments.GroupMoments{}
	for _, at := range slices.SortedFunc(maps.Keys(g), compareGroups) {
		if m := g[at]; m.Visitors != 0 || m.Recent != 0 {
			rows = append(rows, moments.GroupMoments{GroupKey: at, Moments: m})
		}
	}
	return rows
}

func compareGroups(a, b moments.GroupKey) int {
	return cmp.Or(
		cmp.Compare(a.VariationID, b.VariationID), cmp.Compare(a.Dimension, b.Dimension),
		cmp.Compare(a.Period, b.Period),
		compareBools(a.ExposedBefore, b.ExposedBefore), compareBools(a.MultiExposed, b.MultiExposed),
		compareBools(a.Immature, b.Immature))
}

// compareBools orders false before true.
func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// sliceRows returns the rows of the most frequent values, and rows for all other values, which are the whole report
// minus these rows. They have no visitors of the recent days.
func (s *sums) sliceRows(whole, byValue []moments.GroupMoments) []moments.GroupMoments {
	visitors := map[string]int64{}
	for i := range byValue {
		byValue[i].Recent = 0
		if !byValue[i].ExposedBefore {
			visitors[byValue[i].Dimension] += byValue[i].MatureVisitors()
		}
	}
	values := moments.MostVisited(visitors)
	values = values[:min(len(values), s.Top)]
	shown := slices.DeleteFunc(byValue, func(r moments.GroupMoments) bool {
		return !slices.Contains(values, r.Dimension)
	})
	others := otherRows(whole, shown)
	if !slices.ContainsFunc(others, func(r moments.GroupMoments) bool { return !r.ExposedBefore }) {
		return shown // no other value has visitors of the window
	}
	return append(shown, others...)
}

// otherRows returns the rows of a whole report without the visitors of the values that are shown.
func otherRows(whole, shown []moments.GroupMoments) (rows []moments.GroupMoments) {
	for _, others := range whole {
		others.Others = true
		others.Recent = 0
		for i := range shown {
			of := shown[i].GroupKey
			of.Dimension = ""
			if of == others.GroupKey {
				others.Moments = others.Subtract(shown[i].Moments)
			}
		}
		if others.Visitors != 0 {
			rows = append(rows, others)
		}
	}
	return rows
}
