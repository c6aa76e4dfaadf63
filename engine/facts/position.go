package facts

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine/fold"
	"lifthouse/schema"
	"lifthouse/schema/books"
)

// Position says how far events are folded into a generation of the facts.
type Position struct {
	Generation uint32 // number of the generation; 0: the first one of a store
	Format     uint32 // fold.Version of the program that began the generation
	Refresh    uint32 // number of the last refresh; 0: none
	Through    int64  // acceptance time up to which events are folded, in milliseconds since 1970
	Attempt    uint64 // random: several processes may attempt the refresh, and one succeeds
	// Currencies are those of the websites by which the events are folded, such as "1=EUR,2=JPY", and Rates the version
	// of the rates.
	Currencies string
	Rates      books.Version
	// Rebuilding means that the generation is built beside another one, from which reports are computed until it is
	// complete.
	Rebuilding bool
	// Until and After are of a fold that has begun and is not complete. Visitors are folded in order: the events
	// accepted up to the time Until are folded of the visitors up to After, and those up to Through of the others.
	// An Until of 0 means that no fold is incomplete.
	Until int64
	After schema.Visitor
}

// FoldedThrough returns the acceptance time up to which events are folded; zero: no fold is complete.
func (p Position) FoldedThrough() time.Time {
	if p.Through == 0 {
		return time.Time{}
	}
	return time.UnixMilli(p.Through).UTC()
}

// isFolding reports whether a fold has begun and is not complete.
func (p Position) isFolding() bool { return p.Until != 0 }

// nextRefresh returns the position after another refresh without newer events.
func (p Position) nextRefresh() Position {
	next := p
	next.Refresh++
	next.Attempt = rand.Uint64() //nolint:gosec // distinguishes attempts
	return next
}

// foldedUpTo returns the position after another refresh that folded the visitors up to one, in order, in a fold of the
// events accepted up to a time.
func (p Position) foldedUpTo(last schema.Visitor, until int64) Position {
	next := p.nextRefresh()
	next.After = last
	next.Until = until
	return next
}

// foldedThrough returns the position after the last refresh of a fold of the events accepted up to a time.
func (p Position) foldedThrough(until int64) Position {
	next := p.nextRefresh()
	next.Through = until
	next.Until = 0
	next.After = schema.Visitor{}
	return next
}

// hasSameEvents reports whether two positions differ at most in their refreshes.
func (p Position) hasSameEvents(o Position) bool {
	p.Refresh = o.Refresh
	p.Attempt = o.Attempt
	return p == o
}

// tokenAfter returns the token of the insert that moves from a position to p. It is equal in processes at the same
// position.
func (p Position) tokenAfter(last Position) string {
	return fmt.Sprintf("generation %d: %d after %x", p.Generation, p.Refresh, last.Attempt)
}

// asRow returns the row of a position.
func (p Position) asRow() *fold.FactRow {
	none := schema.Subject{Kind: schema.SubjectNone}
	row := &fold.FactRow{
		Subject: none, Grain: fold.OfPosition, Visitor: p.Attempt, First: p.Through, Number: p.Refresh,
		Variation: p.Currencies, Seen: p.Format, Digest: uint64(p.Generation),
		Since:   uint64(p.Until), //nolint:gosec // not negative
		Amounts: [3]int64{p.Rates.Count, p.Rates.Through},
	}
	if p.isFolding() {
		row.Later = []uint64{uint64(p.After.WebsiteID), p.After.ID} //nolint:gosec // bits
	}
	if p.Rebuilding {
		row.Goal = 1
	}
	return row
}

// ErrIncomplete means that the server does not have all parts of the facts yet. If this persists, the server has lost
// parts, or facts were inserted during a rebuild.
var ErrIncomplete = errors.New("some stored facts are missing: rebuild them (lifthouse facts --rebuild), " +
	"unless a replica was just started and still fetches them")

// storedPositions are the stored positions of the generations of a server.
type storedPositions map[uint32][]storedPosition

type storedPosition struct {
	Position
	copies int64 // 1, unless parts are missing
}

// readPositions returns the positions of all generations of a server. Normally, there is one generation, and two while
// facts are rebuilt.
func (s *server) readPositions(ctx context.Context) (storedPositions, error) {
	return s.readPositionsWhere(ctx, "_partition_id IN ('0', '1')")
}

// readPositionOf returns the position of the generation of the server; the zero position of the generation if it has
// none. The error may be ErrIncomplete.
func (s *server) readPositionOf(ctx context.Context) (Position, error) {
	stored, err := s.readPositionsWhere(ctx, s.inGeneration())
	if err != nil {
		return Position{}, err
	}
	return stored.of(s.generation)
}

func (s *server) readPositionsWhere(ctx context.Context, where string) (storedPositions, error) {
	found := storedPositions{}
	err := schema.EachRow(ctx, s, s.render("position.sql", where), func(row driver.Rows) error {
		var p storedPosition
		var generation, until uint64
		var after []uint64
		err := row.Scan(&generation, &p.Format, &p.Refresh, &p.Through, &p.Attempt, &p.Currencies,
			&p.Rates.Count, &p.Rates.Through, &p.Rebuilding,
			&until, &after, &p.copies)
		p.Generation = uint32(generation) //nolint:gosec // written by asRow
		p.Until = int64(until)            //nolint:gosec // written by asRow
		if len(after) > 1 {
			p.After = schema.Visitor{WebsiteID: int64(after[0]), ID: after[1]} //nolint:gosec // bits
		}
		found[p.Generation] = append(found[p.Generation], p)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the position of the facts: %w", err)
	}
	return found, nil
}

// of returns the position of a generation; the zero position of the generation if it has none. The error may be
// ErrIncomplete.
func (of storedPositions) of(generation uint32) (Position, error) {
	rows := of[generation]
	switch {
	case len(rows) == 0:
		return Position{Generation: generation, Format: fold.Version}, nil
	case len(rows) > 1 || rows[0].copies != 1:
		return Position{}, ErrIncomplete
	}
	return rows[0].Position, nil
}

// shown returns the position of the generation from which reports are computed: the last one that is not being rebuilt.
// The error may be ErrIncomplete.
func (of storedPositions) shown() (Position, error) { return of.of(of.lastShown()) }

// lastShown returns the number of the last generation that is not being rebuilt.
func (of storedPositions) lastShown() (shown uint32) {
	for generation, rows := range of {
		isBuilt := false
		for i := range rows {
			isBuilt = isBuilt || !rows[i].Rebuilding
		}
		if isBuilt {
			shown = max(shown, generation)
		}
	}
	return shown
}

// readPosition returns the position of the generation from which reports are computed. The error may be ErrIncomplete.
func (s *server) readPosition(ctx context.Context) (Position, error) {
	stored, err := s.readPositions(ctx)
	if err != nil {
		return Position{}, err
	}
	return stored.shown()
}

// of returns the server with the facts of a generation.
func (s *server) of(generation uint32) *server {
	one := *s
	one.generation = generation
	return &one
}

// A section is the number of all rows of a grain of a subject in a generation. Its highest bits are the grain, the next
// bit is that of the generation, and the others are a hash of the subject. They suffice: among a million subjects, the
// probability of a collision is 10^-6. The table is partitioned by the bit of the generation, so that an insert of one
// generation is one part, and all facts of the last one are dropped at once.
const (
	hashBits      = 59
	grainBit      = hashBits + 1
	generationBit = hashBits
	hashMask      = 1<<hashBits - 1
)

// inGeneration returns the condition of the rows in the partition of the generation. A damaged part of the other
// generation is not read.
func (s *server) inGeneration() string { return fmt.Sprintf("_partition_id = '%d'", s.generation&1) }

// firstSection returns the lowest section of a grain in the generation of the server.
func (s *server) firstSection(grain fold.Grain) uint64 {
	return uint64(grain)<<grainBit | uint64(s.generation&1)<<generationBit
}

// sectionOf returns the section of the rows of a grain of a subject in the generation of the server.
func (s *server) sectionOf(subject schema.Subject, grain fold.Grain) uint64 {
	first := s.firstSection(grain)
	if grain == fold.OfPosition {
		return first
	}
	of := fmt.Sprintf("%d %s %d %d", subject.WebsiteID, subject.Kind, subject.ID, subject.ExperimentID)
	return first | schema.HashID(of)>>(64-hashBits)
}
