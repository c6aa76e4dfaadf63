package visitors

import (
	"context"
	"embed"
	"fmt"
	"strings"
	"text/template"

	"lifthouse/engine/generation"
	"lifthouse/engine/source"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

var sqlTemplates = template.Must(source.Templates().ParseFS(sqlFiles, "sql/*.sql"))

// expr is trusted SQL, made of constants only.
type expr string

// rebuildSlots are the slots of sql/rebuild_exposures.sql and
// sql/rebuild_conversions.sql.
type rebuildSlots struct {
	Attributes expr
	Shown      []expr // attributes of the first view of a visitor
	AsOne      expr   // attributes of a view in one string
	Events     expr   // of a visitor: events that may count
	Order      generation.Order
}

const (
	allEvents  = "groupArray((toUnixTimestamp64Milli(time), toUInt8(event), keyed.variation_id))"
	goalEvents = "groupArrayIf((goal_id, toUnixTimestamp64Milli(time), event_id, value, profit, extra_value), event = 'goal')"
)

var (
	rebuildExposures   = byOrder("rebuild_exposures.sql", allEvents)
	rebuildConversions = byOrder("rebuild_conversions.sql", goalEvents)

	insertExposures = "INSERT INTO exposures (bucket, generation, refresh, segment, " + strings.Join(Attributes, ", ") +
		", first_time, multi_exposed_at, views, clicks, submits, completions, conversions, contacts, later_hours, later_kinds, last_ms)"
	insertConversions = "INSERT INTO conversions (bucket, generation, refresh, segment, goal_id, " + strings.Join(Attributes, ", ") +
		", first_time, visitor_id, since_ms, number, value, profit, extra_value, value_before, profit_before, extra_value_before)"
)

// byOrder returns a statement for each order of events.
func byOrder(file string, events expr) map[generation.Order]string {
	rendered := map[generation.Order]string{}
	for _, by := range []generation.Order{generation.ByTime, generation.ByBlock, generation.BySet} {
		rendered[by] = source.MustRender(sqlTemplates, file, newRebuildSlots(events, by))
	}
	return rendered
}

func newRebuildSlots(events expr, by generation.Order) rebuildSlots {
	s := rebuildSlots{Order: by, Attributes: expr(strings.Join(Attributes, ", ")), AsOne: expr(strings.Join(Attributes, `, '\0', `)), Events: events}
	for i := range Attributes {
		s.Shown = append(s.Shown, expr(fmt.Sprintf("shown[%d]", i+1)))
	}
	return s
}

// New returns an empty generation.
func New(id generation.ID, variations []int64) Generation {
	return Generation{ID: id, Refreshes: map[uint64]uint32{}, Unconverted: map[uint64]uint32{}, Variations: variations}
}

// Rebuild inserts the rows of a range of visitors, one block per table, as a part
// of the first refresh. The parameters are those of the subject, of the events and
// of the range.
func (g *Generation) Rebuild(ctx context.Context, conn driver.Conn, by generation.Order, params []any) error {
	g.Refreshes[g.Number] = 1
	g.Blocks++
	params = append(params, clickhouse.Named("bucket", g.Bucket), clickhouse.Named("generation", g.Number),
		clickhouse.Named("refresh", g.Number<<numberBits|1), clickhouse.Named("variations", g.Variations))
	if err := conn.Exec(ctx, rebuildExposures[by], params...); err != nil {
		return fmt.Errorf("rebuild exposures: %w", err)
	}
	if err := conn.Exec(ctx, rebuildConversions[by], params...); err != nil {
		return fmt.Errorf("rebuild conversions: %w", err)
	}
	return nil
}
