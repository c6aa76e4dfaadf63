package generation

import (
	"cmp"
	"fmt"
	"slices"
)

// Blocks is a set of blocks of a replicated table, as disjoint intervals in ascending order. A
// block is partition · 2^40 + number; partitions are months as YYYYMM.
type Blocks []Interval

// Interval has all blocks from First to Last.
type Interval struct{ First, Last uint64 }

// blockBits are the bits of the number of a block, below its partition.
const blockBits = 40

// NewBlocks returns the union of intervals, which may overlap.
func NewBlocks(some []Interval) Blocks {
	all := slices.Clone(some)
	slices.SortFunc(all, func(a, b Interval) int { return cmp.Compare(a.First, b.First) })
	var union Blocks
	for _, next := range all {
		if n := len(union); n > 0 && next.First <= union[n-1].Last+1 {
			union[n-1].Last = max(union[n-1].Last, next.Last)
			continue
		}
		union = append(union, next)
	}
	return union
}

// Include reports whether all of the other blocks are in the set.
func (b Blocks) Include(others Blocks) bool {
	i := 0
	for _, other := range others {
		for i < len(b) && b[i].Last < other.First {
			i++
		}
		if i == len(b) || other.First < b[i].First || other.Last > b[i].Last {
			return false
		}
	}
	return true
}

// Intersect returns the blocks that are in both sets.
func (b Blocks) Intersect(others Blocks) Blocks {
	var both Blocks
	for i, j := 0, 0; i < len(b) && j < len(others); {
		first, last := max(b[i].First, others[j].First), min(b[i].Last, others[j].Last)
		if first <= last {
			both = append(both, Interval{first, last})
		}
		if b[i].Last < others[j].Last {
			i++
		} else {
			j++
		}
	}
	return both
}

// Bounds returns the set as a parameter of the conditions of BySet. With the bound of a block
// being twice its number, the greatest of these bounds up to it is even if the block is in the
// set, and odd if it is not: an interval begins with the bound of its first block, and ends
// with the bound of its last block plus one. ClickHouse finds it with roundDown, which needs a
// first bound below all blocks.
func (b Blocks) Bounds() []uint64 {
	bounds := []uint64{1}
	for _, interval := range b {
		bounds = append(bounds, 2*interval.First, 2*interval.Last+1)
	}
	return bounds
}

// boundOfRow is the bound of the block of a row.
var boundOfRow = fmt.Sprintf("2 * (bitShiftLeft(toUInt64(toYYYYMM(time)), %d) + _block_number)", blockBits)

// boundOfPart returns the bound of the first (2) or the last (3) block of a part, whose name is
// PARTITION_FIRST_LAST_LEVEL.
func boundOfPart(place int) string {
	const of = "toUInt64(splitByChar('_', _part)[%d])"
	return fmt.Sprintf("2 * (bitShiftLeft("+of+", %d) + "+of+")", 1, blockBits, place)
}
