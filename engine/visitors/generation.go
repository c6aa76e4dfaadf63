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
	Refreshes   map[uint64]uint32 // by epoch: number of complete refreshes
	Unconverted map[uint64]uint32 // by epoch: number of those that changed no conversions
	Blocks      int64             // blocks per table of the first refresh, a rebuild
	Variations  []int64           // by index in segments
}

// MaxVariations is the maximum number of variations in segments, which have eight
// bits.
const MaxVariations = 62

// The bits of a segment below the index of the variation.
const (
	cancelsBit      = 1
	multiExposedBit = 2
	segmentBits     = 2
	// marker is the segment of a row that marks a refresh. Such a row has no attributes.
	// sql/marker.sql also says so of the device, the first attribute of the key, so that a
	// statement with filters reads only the granules that the key does not exclude.
	marker = 255
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
	return g.ID == o.ID && g.Blocks == o.Blocks && maps.Equal(g.Refreshes, o.Refreshes) && maps.Equal(g.Unconverted, o.Unconverted) && slices.Equal(g.Variations, o.Variations)
}

// AddRefresh adds the next refresh of an epoch, which inserts the changes, and returns its
// number.
func (g *Generation) AddRefresh(epoch uint64, of *Changes) uint32 {
	g.Refreshes = maps.Clone(g.Refreshes)
	g.Refreshes[epoch]++
	if len(of.conversions) == 0 {
		g.Unconverted = maps.Clone(g.Unconverted)
		g.Unconverted[epoch]++
	}
	return g.Refreshes[epoch]
}

// exposureMarkers returns the number of blocks of exposures of all complete
// refreshes, each of which has a marker: one per refresh after the first.
func (g *Generation) exposureMarkers() int64 {
	n := g.Blocks - 1
	for _, last := range g.Refreshes {
		n += int64(last)
	}
	return n
}

// conversionMarkers is exposureMarkers of conversions, where a refresh inserts no
// block without rows.
func (g *Generation) conversionMarkers() int64 {
	n := g.exposureMarkers()
	for _, without := range g.Unconverted {
		n -= int64(without)
	}
	return n
}

// The keys of a generation in the column state of rollups. The state has the
// maximum of each key, so the keys of a generation contain its number.
const (
	numberKey         = "visitors"
	bucketPrefix      = "bucket "
	blocksPrefix      = "blocks "
	refreshPrefix     = "refresh "
	unconvertedPrefix = "unconverted "
	variationPrefix   = "variation "
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
	for epoch, n := range g.Unconverted {
		state[fmt.Sprint(unconvertedPrefix, g.Number, " ", epoch)] = int64(n)
	}
	for i, id := range g.Variations {
		state[fmt.Sprint(variationPrefix, i)] = id
	}
}

// Decode returns the current generation in the column state of rollups.
func Decode(state map[string]int64) Generation {
	g := Generation{Refreshes: map[uint64]uint32{}, Unconverted: map[uint64]uint32{}}
	g.Number = uint64(state[numberKey])                          //nolint:gosec // as encoded
	g.Bucket = uint16(state[fmt.Sprint(bucketPrefix, g.Number)]) //nolint:gosec // as encoded
	g.Blocks = state[fmt.Sprint(blocksPrefix, g.Number)]
	for prefix, byEpoch := range map[string]map[uint64]uint32{refreshPrefix: g.Refreshes, unconvertedPrefix: g.Unconverted} {
		for key, value := range state {
			if epoch, is := strings.CutPrefix(key, fmt.Sprint(prefix, g.Number, " ")); is {
				n, _ := strconv.ParseUint(epoch, 10, 64)
				byEpoch[n] = uint32(value) //nolint:gosec // as encoded
			}
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
