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

// RollupLayout is the version of the layout of the table rollups. Rollups of
// another layout are not read. It must change whenever Cubes changes.
const RollupLayout = 2

// StateCube is the name of the cube that stores the state of a generation.
const StateCube = "state"

// Cube is one way to group the visitors of a subject into cells. The table
// rollups stores the sums of each cell.
type Cube struct {
	Name     string
	By       []string // attributes of the first view to group by
	FirstDay bool     // also group by the day of the first view
	Day      bool     // also group by the day of the event
	Frequent bool     // store the most frequent values separately, see FrequentCube
	Rank     bool     // count views of all variations together, with the hash of the value as the goal id, to find the most frequent values
}

// Columns returns the columns that identify the cube's cells, except the event
// and the goal.
func (c *Cube) Columns() []string {
	columns := slices.Clone(c.By)
	if !c.Rank {
		columns = append(columns, "variation_id", "multi_exposed")
	}
	if c.FirstDay {
		columns = append(columns, "first_day")
	}
	if c.Day {
		columns = append(columns, "day")
	}
	return columns
}

// HasAttribute reports whether the cube groups by the attribute.
func (c *Cube) HasAttribute(column string) bool { return slices.Contains(c.By, column) }

// frequentSuffix is appended to the name of a cube to form the name of its
// FrequentCube.
const frequentSuffix = ", frequent"

// FrequentCube returns the name of the cube that stores the most frequent values
// of the named cube next to each other. The most frequent values are determined
// when a generation is created. They stay the same throughout the generation, and
// each has at least one row.
func FrequentCube(name string) string { return name + frequentSuffix }

// BaseCube is the inverse of FrequentCube. It returns any other name unchanged.
func BaseCube(name string) string { return strings.TrimSuffix(name, frequentSuffix) }

// Cubes are all cubes. Of two cubes that can serve a query, the cheaper one is
// first. A filter or a breakdown needs its attribute; a window needs both days; a
// time series needs the day of the event. A report without a window needs the day
// of the first view, for the rate of new visitors. Referrers and most pairs of
// attributes have too many values to be stored by day. Exactly one cube has Rank
// set.
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

// CubeAttributes are the columns that cubes group by.
var CubeAttributes = []string{
	"device", "country", "channel", "browser", "os", "visitor_type", "referrer", "utm_source", "utm_medium", "utm_campaign",
}

// RollupState is the state of one generation of one subject's rollups.
type RollupState struct {
	WebsiteID    int64
	Subject      Subject
	SubjectID    int64
	ExperimentID int64
	Generation   uint64
	Complete     bool      // contains all events accepted until Through, and may be read
	SharesSince  int64     // start of the traffic shares that apply to it, in Unix milliseconds
	Events       uint64    // number of events in it
	Through      time.Time // acceptance time of the last event
	Newest       time.Time // maximum event time
}

// SameSubject reports whether two generations belong to the same subject.
func (s *RollupState) SameSubject(o *RollupState) bool {
	return s.WebsiteID == o.WebsiteID && s.Subject == o.Subject && s.SubjectID == o.SubjectID && s.ExperimentID == o.ExperimentID
}

// subjectsOf are the kinds of subjects by their enum values in the tables.
var subjectsOf = []Subject{SubjectNone, SubjectCampaign, SubjectWidget}

// Partition returns the id of the generation's partition in the table rollups.
func (s *RollupState) Partition() string {
	return fmt.Sprintf(rollupPartition, s.WebsiteID, slices.Index(subjectsOf, s.Subject), s.SubjectID, s.ExperimentID, s.Generation)
}

// rollupPartition is the format that ClickHouse uses for the id of a partition
// whose key consists of integers.
const rollupPartition = "%d-%d-%d-%d-%d"

//go:embed rollup_states.sql
var rollupStates string

// RollupStates returns the states of all generations of the current layout. The
// generations of a subject are in descending order.
func RollupStates(ctx context.Context, conn driver.Conn) ([]RollupState, error) {
	rows, err := conn.Query(ctx, rollupStates, clickhouse.Named("layout", int64(RollupLayout)))
	if err != nil {
		return nil, fmt.Errorf("read rollup states: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var all []RollupState
	for rows.Next() {
		var s RollupState
		var subjectName string
		var complete int64
		if err := rows.Scan(&s.WebsiteID, &subjectName, &s.SubjectID, &s.ExperimentID, &s.Generation, &complete, &s.SharesSince, &s.Events, &s.Through, &s.Newest); err != nil {
			return nil, fmt.Errorf("read rollup states: %w", err)
		}
		s.Subject, s.Complete, s.Through, s.Newest = Subject(subjectName), complete == 1, s.Through.UTC(), s.Newest.UTC()
		all = append(all, s)
	}
	return all, rows.Err()
}

// InsertRollupState marks a generation as complete and stores its state.
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

// Several sums are packed into one integer. The sum of packed integers is the
// packed integer of the sums.
const (
	squaresBits = 128 // bits of the sum of squares, below the sum
	signBits    = 40  // bits of each number of visitors
)

// PackAmounts returns sum · 2^128 + squares.
func PackAmounts(sum, squares *big.Int) *big.Int {
	packed := new(big.Int).Lsh(sum, squaresBits)
	return packed.Add(packed, squares)
}

// UnpackAmounts is the inverse of PackAmounts. The squares must be from -2^127 to
// 2^127 - 1. The squares of a single day may be negative: a visitor's amounts of
// a day may reduce the absolute sum of the earlier days.
func UnpackAmounts(packed *big.Int) (sum, squares *big.Int) {
	sum = new(big.Int).Add(packed, halfSquares)
	sum.Rsh(sum, squaresBits) // rounds down
	squares = new(big.Int).Lsh(sum, squaresBits)
	return sum, squares.Sub(packed, squares)
}

// halfSquares is added to make the squares nonnegative.
var halfSquares = new(big.Int).Lsh(big.NewInt(1), squaresBits-1)

// PackSigns packs six numbers of visitors into one integer. The first number has
// the lowest bits.
func PackSigns(counts [6]int64) *big.Int {
	packed := new(big.Int)
	for i := len(counts) - 1; i >= 0; i-- {
		packed.Add(packed.Lsh(packed, signBits), big.NewInt(counts[i]))
	}
	return packed
}

// UnpackSigns is the inverse of PackSigns. The numbers may be negative: the
// events of a day may change the sign of a visitor's amount.
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

// halfSign limits the packed numbers of visitors, which must be from -halfSign to
// halfSign - 1.
const halfSign = 1 << (signBits - 1)

// halfSigns is added to make all numbers nonnegative.
var halfSigns = PackSigns([6]int64{halfSign, halfSign, halfSign, halfSign, halfSign, halfSign})

//go:embed frequent_values.sql
var frequentValues string

// FrequentValues returns the frequent values of the cube's attribute in a
// complete generation.
func FrequentValues(ctx context.Context, conn driver.Conn, s *RollupState, c *Cube) (map[string]bool, error) {
	values, err := QueryNames(ctx, conn, fmt.Sprintf(frequentValues, identifier(c.By[0])),
		clickhouse.Named("partition", s.Partition()), clickhouse.Named("cube", FrequentCube(c.Name)))
	if err != nil {
		return nil, fmt.Errorf("read frequent values: %w", err)
	}
	frequent := make(map[string]bool, len(values))
	for _, value := range values {
		frequent[value] = true
	}
	return frequent, nil
}

// Generations returns all stored generations, complete or not, by partition id.
// Only the fields of the partition key are set.
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

// DropRollups drops all generations for which of returns true, and reports
// whether there were any. Each generation is dropped atomically, so a concurrent
// reader sees all of it or no state. It must be called before events are deleted,
// because rollups include deleted events.
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

// MergeRollup merges the parts of a generation, which makes it faster to read.
func MergeRollup(ctx context.Context, conn driver.Conn, s *RollupState) error {
	return conn.Exec(ctx, "OPTIMIZE TABLE rollups PARTITION ID {id:String} FINAL", clickhouse.Named("id", s.Partition()))
}
