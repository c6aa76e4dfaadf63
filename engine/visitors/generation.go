package visitors

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"lifthouse/engine/generation"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Generation identifies the rows of a subject, and lists what may be read.
type Generation struct {
	generation.ID
	Refreshes  map[uint64]uint32 // by epoch: number of complete refreshes
	Blocks     int64             // blocks per table of the first refresh, a rebuild; later ones have one block each
	Variations []int64           // by index in segments
}

// MaxVariations is the maximum number of variations in segments, which have eight
// bits.
const MaxVariations = 62

// The bits of a segment below the index of the variation.
const (
	cancelsBit      = 1
	multiExposedBit = 2
	segmentBits     = 2
	marker          = 255 // a row that marks a refresh
)

// MaxRefreshes is the maximum number of refreshes of an epoch.
const MaxRefreshes = 1<<numberBits - 1

// LastEpoch returns the last epoch; 0: none.
func (g *Generation) LastEpoch() (last uint64) {
	for epoch := range g.Refreshes {
		last = max(last, epoch)
	}
	return last
}

// numberBits are the bits of the number of a refresh, below its epoch.
const numberBits = 20

// Equal reports whether the generations have the same rows.
func (g *Generation) Equal(o *Generation) bool {
	return g.ID == o.ID && g.Blocks == o.Blocks && maps.Equal(g.Refreshes, o.Refreshes) && slices.Equal(g.Variations, o.Variations)
}

// markers returns the number of blocks of all complete refreshes, each of which
// has a marker.
func (g *Generation) markers() int64 {
	n := g.Blocks - 1
	for _, last := range g.Refreshes {
		n += int64(last)
	}
	return n
}

// The keys of a generation in the column state of rollups. The state has the
// maximum of each key, so the keys of a generation contain its number.
const (
	numberKey       = "visitors"
	bucketPrefix    = "bucket "
	blocksPrefix    = "blocks "
	refreshPrefix   = "refresh "
	variationPrefix = "variation "
)

// Encode adds the generation to the column state of rollups.
func (g *Generation) Encode(state map[string]int64) {
	if g.Number == 0 {
		return
	}
	state[numberKey] = int64(g.Number) //nolint:gosec // milliseconds
	state[fmt.Sprint(bucketPrefix, g.Number)] = int64(g.Bucket)
	state[fmt.Sprint(blocksPrefix, g.Number)] = g.Blocks
	for epoch, last := range g.Refreshes {
		state[fmt.Sprint(refreshPrefix, g.Number, " ", epoch)] = int64(last)
	}
	for i, id := range g.Variations {
		state[fmt.Sprint(variationPrefix, i)] = id
	}
}

// Decode returns the current generation in the column state of rollups.
func Decode(state map[string]int64) Generation {
	g := Generation{Refreshes: map[uint64]uint32{}}
	g.Number = uint64(state[numberKey])                          //nolint:gosec // as encoded
	g.Bucket = uint16(state[fmt.Sprint(bucketPrefix, g.Number)]) //nolint:gosec // as encoded
	g.Blocks = state[fmt.Sprint(blocksPrefix, g.Number)]
	for key, value := range state {
		if epoch, is := strings.CutPrefix(key, fmt.Sprint(refreshPrefix, g.Number, " ")); is {
			n, _ := strconv.ParseUint(epoch, 10, 64)
			g.Refreshes[n] = uint32(value) //nolint:gosec // as encoded
		}
	}
	for i := 0; ; i++ {
		id, has := state[fmt.Sprint(variationPrefix, i)]
		if !has {
			return g
		}
		g.Variations = append(g.Variations, id)
	}
}

// Cancelling returns the share of the rows of exposures that cancel others.
func (g *Generation) Cancelling(ctx context.Context, conn driver.Conn) (share float64, err error) {
	row := conn.QueryRow(ctx, "SELECT countIf(segment != 255 AND segment % 2 = 1) / count() FROM exposures WHERE bucket = {bucket:UInt16} AND generation = {generation:UInt64}",
		clickhouse.Named("bucket", g.Bucket), clickhouse.Named("generation", g.Number))
	if err := row.Scan(&share); err != nil {
		return 0, fmt.Errorf("count the rows that cancel others: %w", err)
	}
	return share, nil
}
