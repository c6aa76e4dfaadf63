package facts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/ClickHouse/clickhouse-go/v2"

	"lifthouse/engine/fold"
	"lifthouse/schema"
)

// A Build is a generation of the facts that is folded beside the one from which reports are computed, and then takes
// its place at once. Until then, reports, refreshes and scrubs go on with the facts as they are, and nothing that
// happens to the build changes them. An interrupted build is continued by the next one.
type Build struct {
	shown   *Refresher // refreshes the generation from which reports are computed
	builder *Refresher // refreshes the generation that is built
	damaged bool       // the position of the present facts cannot be read
	// Lost are the visitors with fewer stored events than the present facts were made of: the new facts do not count
	// the lost ones.
	Lost []schema.Visitor
	// Unknown is the reason why Lost is not known, such as a damaged part of the present facts; nil: it is known.
	Unknown error
}

// BuildFacts folds all events into a new generation of facts. The caller must call Show or Discard. There is one build
// of a process at a time.
func (r *Refresher) BuildFacts(ctx context.Context) (*Build, error) {
	if err := r.lockBuild(ctx); err != nil {
		return nil, err
	}
	return r.buildFacts(ctx)
}

// lockBuild waits until no other build of this process runs, or the context ends.
func (r *Refresher) lockBuild(ctx context.Context) error {
	select {
	case r.rebuilds <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// buildFacts is BuildFacts after lockBuild.
func (r *Refresher) buildFacts(ctx context.Context) (*Build, error) {
	b, err := r.openBuild(ctx)
	if err == nil {
		err = b.fold(ctx)
	}
	if err == nil {
		b.Lost, b.Unknown = b.findLost(ctx)
		err = context.Cause(ctx)
	}
	if err != nil {
		r.endBuild()
		return nil, fmt.Errorf("the facts are as they were, because they cannot be rebuilt: %w", err)
	}
	return b, nil
}

// fold folds all events into the build. It begins again if visitors are erased, because an erasure drops the build.
func (b *Build) fold(ctx context.Context) error {
	for {
		_, err := b.builder.RefreshFacts(ctx)
		if !errors.Is(err, ErrIncomplete) {
			return err
		}
		if err := b.shown.dropGeneration(ctx, b.builder.currentServer(), b.builder.building); err != nil {
			return err
		}
	}
}

// openBuild returns a build that continues the stored one, or begins.
func (r *Refresher) openBuild(ctx context.Context) (*Build, error) {
	on := r.currentServer()
	stored, err := on.readPositions(ctx)
	isDamaged := err != nil
	var shown uint32
	if isDamaged { // a rebuild remedies that
		slog.WarnContext(ctx, "the position of the facts cannot be read", "err", err)
		shown, err = on.readPlace(ctx)
		if err != nil {
			return nil, err
		}
	} else {
		shown = stored.lastShown()
	}
	generation := shown + 1
	begun, err := stored.of(generation)
	canContinue := err == nil && len(stored[generation]) > 0 && begun.Format == fold.Version
	if !canContinue {
		if err := r.dropGeneration(ctx, on, generation); err != nil {
			return nil, err
		}
	}
	builder := newRefresher(on.tables)
	builder.servers = r.servers
	builder.money = r.money
	builder.building = generation
	builder.MaxVisitorEvents = r.MaxVisitorEvents
	builder.LeastVisitorsByDay = r.LeastVisitorsByDay
	builder.VisitorsInOrder = r.VisitorsInOrder
	r.published.setBuilder(builder)
	return &Build{shown: r, builder: builder, damaged: isDamaged}, nil
}

// readPlace returns 0 or 1, the place of stored facts whose position cannot be read.
func (s *server) readPlace(ctx context.Context) (place uint32, err error) {
	const statement = "SELECT toUInt32(uniqExact(partition) = 1 AND any(partition) = '1') FROM system.parts " +
		"WHERE active AND database = currentDatabase() AND table = {table:String}"
	if err := s.QueryRow(ctx, statement, clickhouse.Named("table", s.Facts)).Scan(&place); err != nil {
		return 0, fmt.Errorf("look for the parts of the facts: %w", err)
	}
	return place, nil
}

// dropGeneration drops all facts in the place of a generation.
func (r *Refresher) dropGeneration(ctx context.Context, on *server, generation uint32) error {
	drop := fmt.Sprintf("ALTER TABLE %s DROP PARTITION %d", on.Facts, generation&1)
	return schema.WrapError(r.changeStoredParts(ctx, on, drop), "drop facts that no report reads")
}

// FoldProgress returns how far a fold of all events is: that of a rebuild, or the first one of a store.
func (r *Refresher) FoldProgress() Progress {
	if builder := r.published.runningBuilder(); builder != nil {
		now := builder.backlog.progress()
		now.IsRebuild = true
		return now
	}
	return r.backlog.progress()
}

// endBuild lets the next build begin.
func (r *Refresher) endBuild() {
	r.published.setBuilder(nil)
	<-r.rebuilds
}

// visitorsCompared is the number of visitors that a statement compares at once, which takes 100 bytes of memory each.
const visitorsCompared = 4_000_000

// findLost returns the visitors with fewer events in the build than in the present facts. Those whose lost events were
// sent again with other ids have lost none.
func (b *Build) findLost(ctx context.Context) (lost []schema.Visitor, err error) {
	on := b.builder.currentServer()
	old := on.of(on.generation - 1)
	first, next := old.firstSection(fold.OfVisitor), on.firstSection(fold.OfVisitor)
	visitors := int64(0)
	for _, counters := range b.shown.AllCounters() {
		visitors += counters.Visitors
	}
	parts := 1 + uint64(visitors)/visitorsCompared //nolint:gosec // not negative
	for part := range parts {
		from, to := visitorRange(part, parts)
		short, err := schema.QueryRows(ctx, on, on.render("short_visitors.sql", ""), scanVisitor,
			clickhouse.Named("first_section", first), clickhouse.Named("last_section", first|hashMask),
			clickhouse.Named("first_built", next), clickhouse.Named("last_built", next|hashMask),
			clickhouse.Named("first", from), clickhouse.Named("last", to))
		if err != nil {
			return nil, fmt.Errorf("compare the events of visitors: %w", err)
		}
		lost = append(lost, short...)
	}
	if b.shown.ShownPosition().Format != fold.Version {
		return lost, nil // the events of rows of another format cannot be compared one by one
	}
	found, err := b.shown.recheckVisitors(ctx, lost)
	return found.Lost, err
}

// Show folds the events that were accepted since, and makes the build the facts from which reports are computed. It
// returns their position.
func (b *Build) Show(ctx context.Context) (at Position, err error) {
	defer b.shown.endBuild()
	if err := b.fold(ctx); err != nil { // nearly all of them, while reports see new events
		return at, err
	}
	if err := b.shown.lockRefresh(ctx); err != nil {
		return at, err
	}
	err = b.show(ctx)
	b.shown.turn.known = false
	<-b.shown.busy
	if err != nil {
		return at, fmt.Errorf("show the rebuilt facts: %w", err)
	}
	if b.damaged {
		if err := b.shown.dropGeneration(ctx, b.builder.currentServer(), b.builder.building-1); err != nil {
			return at, err
		}
	}
	at, err = b.shown.OpenFacts(ctx)
	if err != nil {
		return at, err
	}
	b.shown.noteLost(ctx, b.shown.published.allLost(), nil)
	if hasReaders := !b.shown.alone || b.shown.IsFollowing(); hasReaders {
		return at, nil // they may still read the old facts, see scrubCellsUntil
	}
	return at, b.shown.DropOldFacts(ctx)
}

// show stores the position with which the build is complete. No refresh of this process runs.
func (b *Build) show(ctx context.Context) error {
	if err := b.fold(ctx); err != nil {
		return err
	}
	_, err := b.builder.runExclusively(ctx, func(ctx context.Context) error {
		next := b.builder.turn.position.nextRefresh()
		next.Rebuilding = false
		return b.builder.storeChanges(ctx, nil, nil, next)
	})
	return err
}

// Discard drops the build. The facts are as they were.
func (b *Build) Discard(ctx context.Context) error {
	defer b.shown.endBuild()
	return b.shown.dropGeneration(ctx, b.builder.currentServer(), b.builder.building)
}

// errLost means that facts count events that are not stored any more.
var errLost = errors.New("the facts are as they were, because only they still count lost events: restore a backup " +
	"(lifthouse restore), or accept the loss (lifthouse facts --rebuild --accept-loss N)")

// RebuildFacts folds all events into a new generation of facts, which takes the place of the present one. If stored
// events are lost that the present facts count, it returns an error and leaves the build for the next one.
func (r *Refresher) RebuildFacts(ctx context.Context) (Position, error) {
	if err := r.lockBuild(ctx); err != nil {
		return Position{}, err
	}
	return r.rebuildFacts(ctx)
}

// rebuildFacts is RebuildFacts after lockBuild.
func (r *Refresher) rebuildFacts(ctx context.Context) (Position, error) {
	b, err := r.buildFacts(ctx)
	if err != nil {
		return Position{}, err
	}
	err = b.Unknown
	if len(b.Lost) > 0 {
		err = fmt.Errorf("%d visitors: %w", len(b.Lost), errLost)
	}
	if err != nil {
		r.endBuild()
		return Position{}, err
	}
	return b.Show(ctx)
}

// rebuildOutdated rebuilds facts of an earlier release, unless another goroutine or process has rebuilt them since.
func (r *Refresher) rebuildOutdated(ctx context.Context) error {
	if err := r.lockBuild(ctx); err != nil {
		return err
	}
	at, err := r.OpenFacts(ctx)
	if err != nil || at.Format >= fold.Version {
		r.endBuild()
		return err
	}
	_, err = r.rebuildFacts(ctx)
	return err
}

// dropBuild drops a build that has begun, with all facts of visitors and subjects whose events were just deleted. A
// process that builds it begins again. The caller holds off refreshes.
func (r *Refresher) dropBuild(ctx context.Context) error {
	return r.dropOther(ctx, func(generation, shown uint32) bool { return generation > shown })
}

// dropOther drops the generation that is not shown, if it is stored and meets a condition.
func (r *Refresher) dropOther(ctx context.Context, isDropped func(generation, shown uint32) bool) error {
	on := r.currentServer()
	stored, err := on.readPositions(ctx)
	if err != nil {
		return err
	}
	for generation := range stored {
		if isDropped(generation, on.generation) {
			return r.dropGeneration(ctx, on, generation)
		}
	}
	return nil
}

// DropOldFacts drops the generation before the one from which reports are computed.
func (r *Refresher) DropOldFacts(ctx context.Context) error {
	if err := r.lockRefresh(ctx); err != nil {
		return err
	}
	defer func() { <-r.busy }()
	return r.dropOther(ctx, func(generation, shown uint32) bool { return generation < shown })
}
