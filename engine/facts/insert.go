package facts

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"lifthouse/engine/fold"
	"lifthouse/schema"
)

const insertedColumns = "section, website_id, subject, subject_id, experiment_id, grain, goal_id, sign, variation, " +
	"visitor_id, first_time, since_ms, number, multi_exposed_at, seen, digest, views, clicks, submits, completions, " +
	"conversions, contacts, later_ms, later_kinds, value, profit, extra_value, value_before, profit_before, " +
	"extra_value_before, sums"

// oneBlock returns the settings of an insert that stores all its rows as one part, or none. Of several inserts with
// the same token, only the first is stored. An empty token equals no other.
func oneBlock(token string) clickhouse.Settings {
	const most = 1 << 40
	settings := clickhouse.Settings{
		"max_insert_block_size": most, "min_insert_block_size_rows": most, "min_insert_block_size_bytes": most,
		"optimize_on_insert": 0, "insert_deduplicate": 0,
	}
	if token != "" {
		settings["insert_deduplicate"], settings["insert_deduplication_token"] = 1, token
	}
	return settings
}

// grains are the values of the column grain by fold.Grain.
var grains = []string{
	fold.OfVisitor: "visitor", fold.OfGoal: "goal", fold.OfAll: "all", fold.OfDay: "day", fold.OfPosition: "position",
}

// section identifies all rows of a grain of a subject.
type section struct {
	schema.Subject
	fold.Grain
}

// hashBits is the number of low bits of a section that hold a hash of the subject; the grain is above them. They
// suffice: among a million subjects, the probability of a collision is 5·10^-7.
const hashBits = 60

// SectionOf returns the section of the rows of a grain of a subject.
func SectionOf(subject schema.Subject, grain fold.Grain) uint64 {
	of, s := uint64(grain)<<hashBits, subject
	if grain == fold.OfPosition {
		return of
	}
	return of | schema.HashID(fmt.Sprintf("%d %s %d %d", s.WebsiteID, s.Kind, s.ID, s.ExperimentID))>>(64-hashBits)
}

// sectionsOfGrain returns the parameters first_section and last_section, the range of the sections
// of a grain.
func sectionsOfGrain(grain fold.Grain) []any {
	first := uint64(grain) << hashBits
	return []any{clickhouse.Named("first_section", first), clickhouse.Named("last_section", first|(1<<hashBits-1))}
}

// cancels is the suffix of the variation of a row that cancels another row.
const cancels = "-"

// insertChanges inserts the changes of a refresh as one atomic block. If an insert with the same token is
// stored, ClickHouse ignores this one and returns no error.
func (s *server) insertChanges(ctx context.Context, token string, changes []fold.Change) error {
	if err := schema.InsertColumns(ctx, s, oneBlock(token), s.insert, columnsOf(changes)); err != nil {
		return fmt.Errorf("insert facts: %w", err)
	}
	return nil
}

// columnsOf returns functions that return the values of insertedColumns and of the attributes.
func columnsOf(changes []fold.Change) []func() any {
	sections := map[section]uint64{}
	columns := []func() any{
		schema.ColumnValues(changes, func(c *fold.Change) uint64 {
			of := section{c.Subject, c.Grain}
			if _, known := sections[of]; !known {
				sections[of] = SectionOf(of.Subject, of.Grain)
			}
			return sections[of]
		}),
		schema.ColumnValues(changes, func(c *fold.Change) int64 { return c.Subject.WebsiteID }),
		schema.ColumnValues(changes, func(c *fold.Change) string { return string(c.Subject.Kind) }),
		schema.ColumnValues(changes, func(c *fold.Change) int64 { return c.Subject.ID }),
		schema.ColumnValues(changes, func(c *fold.Change) int64 { return c.Subject.ExperimentID }),
		schema.ColumnValues(changes, func(c *fold.Change) string { return grains[c.Grain] }),
		schema.ColumnValues(changes, func(c *fold.Change) int64 { return c.Goal }),
		schema.ColumnValues(changes, func(c *fold.Change) int8 {
			if c.Cancels {
				return -1
			}
			return 1
		}),
		schema.ColumnValues(changes, func(c *fold.Change) string {
			if c.Cancels {
				return c.Variation + cancels
			}
			return c.Variation
		}),
		schema.ColumnValues(changes, func(c *fold.Change) uint64 { return c.Visitor }),
		schema.ColumnValues(changes, func(c *fold.Change) time.Time { return time.UnixMilli(c.First).UTC() }),
		schema.ColumnValues(changes, func(c *fold.Change) uint64 { return c.Since }),
		schema.ColumnValues(changes, func(c *fold.Change) uint32 { return c.Number }),
		schema.ColumnValues(changes, func(c *fold.Change) time.Time { return time.UnixMilli(c.MultiExposed).UTC() }),
		schema.ColumnValues(changes, func(c *fold.Change) uint32 { return c.Seen }),
		schema.ColumnValues(changes, func(c *fold.Change) uint64 { return c.Digest }),
	}
	for k := range len(fold.Row{}.Counts) {
		columns = append(columns, schema.ColumnValues(changes, func(c *fold.Change) uint32 { return c.Counts[k] }))
	}
	columns = append(columns,
		schema.ColumnValues(changes, func(c *fold.Change) []uint64 { return c.Later }),
		schema.ColumnValues(changes, func(c *fold.Change) []uint8 { return c.LaterKinds }),
	)
	for k := range len(fold.Row{}.Amounts) {
		columns = append(columns, schema.ColumnValues(changes, func(c *fold.Change) int64 { return c.Amounts[k] }))
	}
	for k := range len(fold.Row{}.Before) {
		columns = append(columns, schema.ColumnValues(changes, func(c *fold.Change) int64 { return c.Before[k] }))
	}
	columns = append(columns, schema.ColumnValues(changes, sumsColumn))
	return append(columns, attributeColumns(changes)...)
}

// attributeColumns divides the joined attributes. Neighbouring changes often have the same.
func attributeColumns(changes []fold.Change) []func() any {
	split := make([][]string, len(fold.Attributes))
	for k := range split {
		split[k] = make([]string, len(changes))
	}
	for i := range changes {
		rest := changes[i].Attributes
		for k := 0; k < len(split) && rest != ""; k++ {
			split[k][i], rest, _ = strings.Cut(rest, string(fold.Separator))
		}
	}
	columns := make([]func() any, len(split))
	for k := range split {
		columns[k] = func() any { return split[k] }
	}
	return columns
}
