package result

import (
	"cmp"
	"slices"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/visit"
	"lifthouse/stats"
)

// EarlierCells are what earlier looks say about the cells of a breakdown: the planned look,
// and the order in which cells became large enough for a conclusion. It is immutable. The
// zero value says nothing.
type EarlierCells struct {
	planned     map[string]plannedCell // by name; nil: not read
	order       []string               // the names of the cells with a rank
	checkpoints int                    // read so far
}

// plannedCell is a cell at the planned look.
type plannedCell struct {
	comparisons []stats.Comparison
	visitors    int64
}

// WithPlannedLook returns the earlier looks with the planned look, from the rows of the
// breakdown that ends with it.
func (e *EarlierCells) WithPlannedLook(p *plan.Plan, found *visit.Rows) *EarlierCells {
	with := *e
	with.planned = map[string]plannedCell{}
	names, all := cellsOf(p, found)
	for i, c := range all {
		if c.isLarge(p) {
			j, _, total := c.compare(p, true)
			with.planned[names[i]] = plannedCell{j.evidence.Comparisons, total.Visitors}
		}
	}
	return &with
}

// WithCheckpoint returns the earlier looks with the next checkpoint, from the rows of the
// breakdown that ends with it. Cells that became large since the checkpoint before get
// their ranks by their visitors. The values of "(other)" change, so it has no rank.
func (e *EarlierCells) WithCheckpoint(p *plan.Plan, found *visit.Rows) *EarlierCells {
	with := *e
	with.checkpoints++
	visitors := map[string]int64{}
	names, all := cellsOf(p, found)
	for i, c := range all {
		if names[i] != otherValues && c.isLarge(p) && !slices.Contains(e.order, names[i]) {
			visitors[names[i]] = c.visitors()
		}
	}
	with.order = slices.Concat(e.order, visit.MostVisited(visitors))
	return &with
}

// Order returns the names of the cells with a rank, in order.
func (e *EarlierCells) Order() []string { return e.order }

// rank returns the rank of a cell; 0: none yet.
func (e *EarlierCells) rank(name string) int { return slices.Index(e.order, name) + 1 }

// LookEnd returns the end of the planned look, or a zero time before it.
func (r *Report) LookEnd() time.Time {
	if r.cells == nil {
		return time.Time{}
	}
	end, _ := r.cells.decision.lookEnd()
	return end
}

// NeedsPlannedLook reports whether the conclusions of the cells need the rows of p at the
// planned look. They do not if the report itself is that look.
func (r *Report) NeedsPlannedLook(e *EarlierCells, p *plan.Plan) bool {
	end := r.LookEnd()
	return !end.IsZero() && e.planned == nil && r.cells.plan.IsDeclared() && p.From().Before(end) && !r.cells.isPlannedLook()
}

// isPlannedLook reports whether the cells of the report are those of the planned look,
// which does not have the visitors of earlier shares.
func (b *breakdown) isPlannedLook() bool { return b.plannedLook && !b.plan.HasEarlierShares() }

// NextCheckpoint returns the time of the next checkpoint of the order of the cells. The
// conclusions need it if the sequence of a cell without a rank is significant with the
// smallest rank that is left. A report with visitors of earlier shares has no ranks.
func (r *Report) NextCheckpoint(e *EarlierCells) (end time.Time, needed bool) {
	b := r.cells
	if b == nil || b.decision == nil || b.plan.HasEarlierShares() {
		return end, false
	}
	all := b.decision.days.checkpoints(b.plan.Filters.To)
	if e.checkpoints >= len(all) {
		return end, false
	}
	for i := range b.cells {
		if b.names[i] == otherValues || !b.large[i] || e.rank(b.names[i]) > 0 {
			continue
		}
		for _, c := range b.cells[i].evidence.Comparisons {
			needed = needed || c.HoldsAtRank(len(e.order)+1, options(b.plan))
		}
	}
	return all[e.checkpoints], needed
}

// Conclude sets the conclusions of the cells of the breakdown.
func (r *Report) Conclude(e *EarlierCells) {
	b := r.cells
	evidence, planned := b.evidence(e)
	r.Breakdown = make([]BreakdownCell, len(b.cells))
	for i, c := range stats.ConcludeCells(evidence, options(b.plan))[:len(b.cells)] {
		j := b.cells[i]
		b.decision.concludeCell(&j, b.plan, c, planned[b.names[i]].visitors)
		j.Power = nil
		r.Breakdown[i] = BreakdownCell{Value: b.names[i], Cell: j.Cell}
	}
}

// evidence returns the evidence of the cells, and then that of cells that only the planned
// look has. It also returns the cells at the planned look.
func (b *breakdown) evidence(e *EarlierCells) ([]stats.CellEvidence, map[string]plannedCell) {
	planned := b.atPlannedLook(e)
	evidence := make([]stats.CellEvidence, len(b.cells))
	for i := range b.cells {
		then, was := planned[b.names[i]]
		evidence[i] = stats.CellEvidence{Evidence: b.cells[i].evidence, AtPlannedLook: then.comparisons}
		evidence[i].Pending = b.pending(was)
		if b.large[i] && !b.plan.HasEarlierShares() {
			evidence[i].Rank = e.rank(b.names[i])
		}
	}
	for name, then := range planned {
		if !slices.Contains(b.names, name) {
			evidence = append(evidence, stats.CellEvidence{AtPlannedLook: then.comparisons})
		}
	}
	return evidence, planned
}

// atPlannedLook returns the cells at the planned look that were large enough then, by
// name. Other questions than the declared one have none.
func (b *breakdown) atPlannedLook(e *EarlierCells) map[string]plannedCell {
	switch {
	case !b.plan.IsDeclared():
		return nil
	case !b.isPlannedLook():
		return e.planned
	}
	planned := map[string]plannedCell{}
	for i, c := range b.cells {
		if b.large[i] {
			planned[b.names[i]] = plannedCell{c.evidence.Comparisons, c.Totals.Visitors}
		}
	}
	return planned
}

// pending returns why an effect of a cell that is significant as if there were only one
// look is not conclusive.
func (b *breakdown) pending(atPlannedLook bool) stats.Reason {
	switch reason := b.decision.pending(); {
	case b.plan.HasEarlierShares():
		return stats.ReasonSharesChanged
	case reason == stats.ReasonPlannedLookInconclusive && !atPlannedLook:
		return stats.ReasonTooEarly
	default:
		return cmp.Or(reason, stats.ReasonTooEarly)
	}
}

// concludeCell sets the conclusion of a cell with so many visitors at the planned look.
func (d *Decision) concludeCell(j *cellResult, p *plan.Plan, c stats.CellConclusion, visitors int64) {
	conclusion := undeclared(p, c.Conclusion)
	if c.Decided == nil {
		j.conclude(p, conclusion, nil)
		return
	}
	j.conclude(p, conclusion, func(s *Statement, _ []VariationResults) {
		end, _ := d.lookEnd()
		s.PlannedLook, s.PlannedVisitors = end, visitors
		s.Conclusion.DecidedAt, s.Conclusion.Decided = &end, NewComparison(c.Decided[c.Index])
		s.Comparison = s.Conclusion.Decided
	})
}
