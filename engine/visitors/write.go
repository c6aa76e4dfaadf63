package visitors

import (
	"context"
	"fmt"
	"slices"
	"time"

	"lifthouse/engine/visit"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Changes are the rows that a refresh adds.
type Changes struct {
	generation  *Generation
	exposures   []signed[*exposure]
	conversions []signed[visitorConversion]
	full        bool // there are too many variations
}

// signed is a row, or a row that cancels an equal one.
type signed[R any] struct {
	row     R
	cancels bool
}

type visitorConversion struct {
	conversion
	visitor uint64
}

// NewChanges returns no changes of a generation. Variations that are new to it are
// added to it.
func NewChanges(g *Generation) *Changes { return &Changes{generation: g} }

// Update adds the change of a visitor from some events to others, of which the
// former are a part.
func (c *Changes) Update(visitor uint64, before, after []Event) {
	old, oldConversions := rowsOf(before)
	now, conversions := rowsOf(after)
	if old != nil {
		c.exposures = append(c.exposures, signed[*exposure]{old, true})
	}
	if now != nil {
		c.exposures = append(c.exposures, signed[*exposure]{now, false})
		c.addVariation(now.variation)
	}
	same := 0
	for same < min(len(oldConversions), len(conversions)) && equal(&oldConversions[same], &conversions[same]) {
		same++
	}
	for _, row := range oldConversions[same:] {
		c.conversions = append(c.conversions, signed[visitorConversion]{visitorConversion{row, visitor}, true})
	}
	for _, row := range conversions[same:] {
		c.conversions = append(c.conversions, signed[visitorConversion]{visitorConversion{row, visitor}, false})
	}
}

func equal(a, b *conversion) bool {
	return a.variation == b.variation && a.multiExposed == b.multiExposed && a.first.at == b.first.at && slices.Equal(a.attributes, b.attributes) &&
		a.goal == b.goal && a.at == b.at && a.number == b.number && a.amounts == b.amounts && a.before == b.before
}

func (c *Changes) addVariation(id int64) {
	if slices.Contains(c.generation.Variations, id) {
		return
	}
	if len(c.generation.Variations) == MaxVariations {
		c.full = true
		return
	}
	c.generation.Variations = append(slices.Clone(c.generation.Variations), id)
}

// Full reports whether there are too many variations, so that the subject cannot
// have rows.
func (c *Changes) Full() bool { return c.full }

func (c *Changes) segment(of *first, cancels bool) uint8 {
	s := uint8(slices.Index(c.generation.Variations, of.variation)) << segmentBits //nolint:gosec // at most MaxVariations
	if of.multiExposed {
		s |= multiExposedBit
	}
	if cancels {
		s |= cancelsBit
	}
	return s
}

// Insert inserts the rows, one block per table with rows, as a refresh of an epoch.
// They are read once the generation lists the refresh. There is always a block of
// exposures: nearly every event of a visitor changes the row of the visitor.
func (c *Changes) Insert(ctx context.Context, conn driver.Conn, epoch uint64, number uint32) error {
	refresh := epoch<<numberBits | uint64(number)
	if err := c.insertExposures(ctx, conn, refresh); err != nil {
		return fmt.Errorf("insert exposures: %w", err)
	}
	if len(c.conversions) == 0 {
		return nil
	}
	if err := c.insertConversions(ctx, conn, refresh); err != nil {
		return fmt.Errorf("insert conversions: %w", err)
	}
	return nil
}

// InsertFirst inserts the rows as the first refresh of the generation.
func (c *Changes) InsertFirst(ctx context.Context, conn driver.Conn) error {
	g := c.generation
	g.Blocks = 1
	return c.Insert(ctx, conn, g.Number, g.AddRefresh(g.Number, c))
}

// noAttributes are the attributes of markers.
var noAttributes = make([]string, len(Attributes))

func milli(at int64) time.Time { return time.UnixMilli(at).UTC() }

func (c *Changes) insertExposures(ctx context.Context, conn driver.Conn, refresh uint64) error {
	batch, err := conn.PrepareBatch(ctx, insertExposures)
	if err != nil {
		return err
	}
	defer func() { _ = batch.Close() }()
	add := func(segment uint8, row *exposure) error {
		values := []any{c.generation.Bucket, c.generation.Number, refresh, segment}
		for _, text := range row.attributes {
			values = append(values, text)
		}
		values = append(values, milli(row.at), milli(row.multiExposedAt))
		for _, n := range row.counts[visit.View:] {
			values = append(values, n)
		}
		return batch.Append(append(values, row.laterHours, row.laterKinds, row.lastMS)...)
	}
	if err := add(marker, &exposure{first: first{attributes: noAttributes}, laterHours: []uint32{}, laterKinds: []uint8{}}); err != nil {
		return err
	}
	for i := range c.exposures {
		if s := &c.exposures[i]; s.row != nil {
			if err := add(c.segment(&s.row.first, s.cancels), s.row); err != nil {
				return err
			}
		}
	}
	return batch.Send()
}

func (c *Changes) insertConversions(ctx context.Context, conn driver.Conn, refresh uint64) error {
	batch, err := conn.PrepareBatch(ctx, insertConversions)
	if err != nil {
		return err
	}
	defer func() { _ = batch.Close() }()
	add := func(segment uint8, row *visitorConversion) error {
		values := []any{c.generation.Bucket, c.generation.Number, refresh, segment, row.goal}
		for _, text := range row.attributes {
			values = append(values, text)
		}
		return batch.Append(append(values, milli(row.first.at), row.visitor, uint64(row.at-row.first.at), row.number,
			row.amounts[0], row.amounts[1], row.amounts[2], row.before[0], row.before[1], row.before[2])...)
	}
	if err := add(marker, &visitorConversion{conversion: conversion{first: first{attributes: noAttributes}}}); err != nil {
		return err
	}
	for i := range c.conversions {
		s := &c.conversions[i]
		if err := add(c.segment(&s.row.first, s.cancels), &s.row); err != nil {
			return err
		}
	}
	return batch.Send()
}
