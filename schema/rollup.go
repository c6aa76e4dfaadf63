package schema

import (
	"context"
	_ "embed" // the statements
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// SettledLayout is the version of what the rows of settled mean: of another
// one there is nothing to read. It changes with Facets.
const RollupLayout = 2

// SettledState is the facet that says how far a generation is settled.
const StateCube = "state"

// Facet is one way of cutting the visitors of a subject into cells, of which
// the table settled keeps the sums.
type Cube struct {
	Name     string
	By       []string // columns of the first view's attributes
	FirstDay bool     // also by the day of the first view
	Day      bool     // also by the day of the event
	Frequent bool     // the values that were the most frequent when the generation was made lie apart, see FrequentFacet
	Rank     bool     // of views alone, and of all variations together, with the hash of the value for a goal: it tells which values have the most visitors
}

// Columns are those that the facet's cells tell, the kind of event and the
// goal apart.
func (f *Cube) Columns() []string {
	columns := slices.Clone(f.By)
	if !f.Rank {
		columns = append(columns, "variation_id", "multi_exposed")
	}
	if f.FirstDay {
		columns = append(columns, "first_day")
	}
	if f.Day {
		columns = append(columns, "day")
	}
	return columns
}

// Keeps says whether the facet's cells tell the attribute.
func (f *Cube) Keeps(column string) bool { return slices.Contains(f.By, column) }

// frequentSuffix ends the name of the facet of a ranked facet's frequent values.
const frequentSuffix = ", frequent"

// FrequentFacet is the facet that has the cells of the values that were the
// most frequent when a generation was made, side by side, instead of the facet
// of that name, which has them among all others. A value stays where it is as
// long as the generation does, and has at least one row in it.
func FrequentCube(name string) string { return name + frequentSuffix }

// WholeFacet is FrequentFacet's inverse; any other name stays.
func WholeCube(name string) string { return strings.TrimSuffix(name, frequentSuffix) }

// Facets are all of them, the cheaper of two that could serve first. A filter
// needs its attribute and a breakdown its own; a window needs both days, a
// series the event's, and the whole of a report the day of the first view, for
// how fast visitors come in. Referrers are too many to be kept by day, and so
// are most pairs. There is one ranked facet.
var Cubes = []Cube{
	{Name: "country", By: []string{"country"}},
	{Name: "all by first day", FirstDay: true},
	{Name: "device by first day", By: []string{"device"}, FirstDay: true},
	{Name: "visitor_type by first day", By: []string{"visitor_type"}, FirstDay: true},
	{Name: "browser by first day", By: []string{"browser"}, FirstDay: true},
	{Name: "os by first day", By: []string{"os"}, FirstDay: true},
	{Name: "channel by first day", By: []string{"channel"}, FirstDay: true},
	{Name: "country by first day", By: []string{"country"}, FirstDay: true},
	{Name: "utm_source by first day", By: []string{"utm_source"}, FirstDay: true},
	{Name: "utm_medium by first day", By: []string{"utm_medium"}, FirstDay: true},
	{Name: "utm_campaign by first day", By: []string{"utm_campaign"}, FirstDay: true},
	{Name: "device, visitor_type by first day", By: []string{"device", "visitor_type"}, FirstDay: true},
	{Name: "device, browser by first day", By: []string{"device", "browser"}, FirstDay: true},
	{Name: "device, os by first day", By: []string{"device", "os"}, FirstDay: true},
	{Name: "device, channel by first day", By: []string{"device", "channel"}, FirstDay: true},
	{Name: "channel, visitor_type by first day", By: []string{"channel", "visitor_type"}, FirstDay: true},
	{Name: "device, country by first day", By: []string{"device", "country"}, FirstDay: true},
	{Name: "country, visitor_type by first day", By: []string{"country", "visitor_type"}, FirstDay: true},
	{Name: "country, channel by first day", By: []string{"country", "channel"}, FirstDay: true},
	{Name: "all by day", Day: true},
	{Name: "all by both days", FirstDay: true, Day: true},
	{Name: "device by both days", By: []string{"device"}, FirstDay: true, Day: true},
	{Name: "channel by both days", By: []string{"channel"}, FirstDay: true, Day: true},
	{Name: "country by both days", By: []string{"country"}, FirstDay: true, Day: true},
	{Name: "referrer", By: []string{"referrer"}, Frequent: true},
	{Name: "referrer, ranked", By: []string{"referrer"}, Rank: true},
}

// SettledAttributes are the columns that facets are made of.
var CubeAttributes = []string{
	"device", "country", "channel", "browser", "os", "visitor_type", "referrer", "utm_source", "utm_medium", "utm_campaign",
}

// Settlement says how far one generation of one subject is settled.
type RollupState struct {
	WebsiteID    int64
	Subject      Subject
	SubjectID    int64
	ExperimentID int64
	Generation   uint64
	Complete     bool      // all that was stored through Through is in it, and it may be read
	SharesSince  int64     // the shares that it was made for hold since then, in milliseconds since 1970
	Events       uint64    // how many are in it
	Through      time.Time // acceptance of the last one
	Newest       time.Time // the latest time of one
}

// SameSubject says whether both generations are of one subject.
func (s *RollupState) SameSubject(o *RollupState) bool {
	return s.WebsiteID == o.WebsiteID && s.Subject == o.Subject && s.SubjectID == o.SubjectID && s.ExperimentID == o.ExperimentID
}

// subjectsOf are the kinds of subjects by their numbers in the tables.
var subjectsOf = []Subject{SubjectNone, SubjectCampaign, SubjectWidget}

// Partition is the id of the generation's partition of settled.
func (s *RollupState) Partition() string {
	return fmt.Sprintf(rollupPartition, s.WebsiteID, slices.Index(subjectsOf, s.Subject), s.SubjectID, s.ExperimentID, s.Generation)
}

// partitionOfSettled is how the engine writes a key of whole numbers.
const rollupPartition = "%d-%d-%d-%d-%d"

//go:embed rollup_states.sql
var rollupStates string

// Settlements returns all generations of this layout, of a subject the later
// ones first.
func RollupStates(ctx context.Context, conn driver.Conn) ([]RollupState, error) {
	rows, err := conn.Query(ctx, rollupStates, clickhouse.Named("layout", int64(RollupLayout)))
	if err != nil {
		return nil, fmt.Errorf("read rollup states: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var all []RollupState
	for rows.Next() {
		var s RollupState
		var of string
		var complete int64
		if err := rows.Scan(&s.WebsiteID, &of, &s.SubjectID, &s.ExperimentID, &s.Generation, &complete, &s.SharesSince, &s.Events, &s.Through, &s.Newest); err != nil {
			return nil, fmt.Errorf("read rollup states: %w", err)
		}
		s.Subject, s.Complete, s.Through, s.Newest = Subject(of), complete == 1, s.Through.UTC(), s.Newest.UTC()
		all = append(all, s)
	}
	return all, rows.Err()
}

// InsertSettlement says that a generation is complete, and how far it goes.
func InsertRollupState(ctx context.Context, conn driver.Conn, s *RollupState) error {
	batch, err := conn.PrepareBatch(ctx, `INSERT INTO rollups (website_id, subject, subject_id, experiment_id, generation, cube_name, event, goal_id,
		visitors, value, events, events_squares, value_times_goals)`)
	if err != nil {
		return fmt.Errorf("insert rollup state: %w", err)
	}
	defer func() { _ = batch.Close() }()
	if err := batch.Append(s.WebsiteID, string(s.Subject), s.SubjectID, s.ExperimentID, s.Generation, StateCube, "active", int64(RollupLayout),
		int64(1), big.NewInt(s.SharesSince), int64(s.Events), big.NewInt(s.Through.UnixMilli()), big.NewInt(s.Newest.UnixMilli())); err != nil { //nolint:gosec // of events
		return fmt.Errorf("insert rollup state: %w", err)
	}
	if err := batch.Send(); err != nil {
		return fmt.Errorf("insert rollup state: %w", err)
	}
	return nil
}

// The packing of several sums into one number: they add up as the number does.
const (
	squaresBits = 128 // of an amount: the sum of squares, below the sum
	signBits    = 40  // of each of the numbers of visitors in signs: more than there are people
)

// PackAmounts returns sum · 2^128 + squares.
func PackAmounts(sum, squares *big.Int) *big.Int {
	packed := new(big.Int).Lsh(sum, squaresBits)
	return packed.Add(packed, squares)
}

// UnpackAmounts returns what PackAmounts was given. Squares may be negative, of
// what a day adds: of a visitor whose amounts of that day take away from those
// before. They are less than 2^127 either way.
func UnpackAmounts(packed *big.Int) (sum, squares *big.Int) {
	sum = new(big.Int).Add(packed, halfSquares)
	sum.Rsh(sum, squaresBits) // rounds down
	squares = new(big.Int).Lsh(sum, squaresBits)
	return sum, squares.Sub(packed, squares)
}

// halfSquares makes squares from -2^127 to 2^127 - 1 not negative when added.
var halfSquares = new(big.Int).Lsh(big.NewInt(1), squaresBits-1)

// PackSigns puts numbers of visitors into one, the first the lowest.
func PackSigns(counts [6]int64) *big.Int {
	packed := new(big.Int)
	for i := len(counts) - 1; i >= 0; i-- {
		packed.Add(packed.Lsh(packed, signBits), big.NewInt(counts[i]))
	}
	return packed
}

// UnpackSigns returns what PackSigns was given, of which any may be negative:
// what a day adds may make an amount 0 again.
func UnpackSigns(packed *big.Int) (counts [6]int64) {
	if packed.Sign() == 0 {
		return counts
	}
	var bytes [len(counts) * signBits / 8]byte
	new(big.Int).Add(packed, halfSigns).FillBytes(bytes[:])
	for i := range counts {
		from := len(bytes) - (i+1)*signBits/8
		for _, b := range bytes[from : from+signBits/8] {
			counts[i] = counts[i]<<8 | int64(b)
		}
		counts[i] -= halfSign
	}
	return counts
}

// halfSigns makes each of the numbers of visitors in signs, which are from
// -halfSign to halfSign - 1, not negative when added.
const halfSign = 1 << (signBits - 1)

var halfSigns = PackSigns([6]int64{halfSign, halfSign, halfSign, halfSign, halfSign, halfSign})

//go:embed frequent_values.sql
var frequentValues string

// FrequentValues returns the values of the facet's attribute that lie apart in
// a complete generation.
func FrequentValues(ctx context.Context, conn driver.Conn, s *RollupState, f *Cube) (map[string]bool, error) {
	values, err := Names(ctx, conn, fmt.Sprintf(frequentValues, identifier(f.By[0])),
		clickhouse.Named("partition", s.Partition()), clickhouse.Named("cube", FrequentCube(f.Name)))
	if err != nil {
		return nil, fmt.Errorf("read which values are frequent: %w", err)
	}
	frequent := make(map[string]bool, len(values))
	for _, value := range values {
		frequent[value] = true
	}
	return frequent, nil
}

// Generations returns all of which there are rows, complete or not, by the ids
// of their partitions.
func Generations(ctx context.Context, conn driver.Conn) (map[string]RollupState, error) {
	rows, err := conn.Query(ctx, "SELECT DISTINCT partition_id FROM system.parts WHERE database = currentDatabase() AND table = 'rollups' AND active AND rows > 0")
	if err != nil {
		return nil, fmt.Errorf("list rollups: %w", err)
	}
	defer func() { _ = rows.Close() }()
	all := map[string]RollupState{}
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, fmt.Errorf("list rollups: %w", err)
		}
		var s RollupState
		var subject int
		if _, err := fmt.Sscanf(id, rollupPartition, &s.WebsiteID, &subject, &s.SubjectID, &s.ExperimentID, &s.Generation); err != nil {
			return nil, fmt.Errorf("list rollups: partition %q: %w", id, err)
		}
		s.Subject = subjectsOf[subject]
		all[id] = s
	}
	return all, rows.Err()
}

// DropSettled removes all generations for which of is true, each at once: who
// reads one has all of it, or finds that it has no state. Whoever takes events
// out of the store calls it before, for sums keep what is gone. It says whether
// there was any.
func DropRollups(ctx context.Context, conn driver.Conn, of func(*RollupState) bool) (bool, error) {
	all, err := Generations(ctx, conn)
	if err != nil {
		return false, err
	}
	dropped := false
	for id, s := range all {
		if !of(&s) {
			continue
		}
		dropped = true
		if err := conn.Exec(ctx, "ALTER TABLE rollups DROP PARTITION ID {id:String}", clickhouse.Named("id", id)); err != nil {
			return true, fmt.Errorf("drop rollups: %w", err)
		}
	}
	return dropped, nil
}

// MergeSettled merges the parts of a generation, which makes it quick to read.
func MergeRollup(ctx context.Context, conn driver.Conn, s *RollupState) error {
	return conn.Exec(ctx, "OPTIMIZE TABLE rollups PARTITION ID {id:String} FINAL", clickhouse.Named("id", s.Partition()))
}
