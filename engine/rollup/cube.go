package rollup

import "slices"

// cube is one way to group the visitors of a subject into cells. The table
// rollups stores the sums of each cell.
type cube struct {
	name     string   // in the table
	by       []string // columns of attributes of the first view to group by
	firstDay bool     // also group by the day of the first view
	day      bool     // also group by the day of the event
	frequent bool     // store the most frequent values separately, see frequentName; another cube ranks the values
	rank     bool     // count views of all variations together, with the hash of the value as the goal id, to find the most frequent values
}

// columns returns the columns that identify the cube's cells, except the event
// and the goal.
func (c *cube) columns() []string {
	columns := slices.Clone(c.by)
	if !c.rank {
		columns = append(columns, "variation_id", "multi_exposed")
	}
	if c.firstDay {
		columns = append(columns, "first_day")
	}
	if c.day {
		columns = append(columns, "day")
	}
	return columns
}

// has reports whether the cube groups by all the columns.
func (c *cube) has(columns []string) bool {
	return !slices.ContainsFunc(columns, func(column string) bool { return !slices.Contains(c.by, column) })
}

// frequentName returns the name under which the cube's most frequent values are
// stored, next to each other. The most frequent values are determined when a
// generation is created. They stay the same throughout the generation, and each
// has at least one row.
func (c *cube) frequentName() string { return c.name + ", frequent" }

// ranked returns the cube that ranks the values of the cube's only attribute, or
// nil.
func (c *cube) ranked() *cube {
	at := slices.IndexFunc(cubes, func(o cube) bool { return o.rank && slices.Equal(o.by, c.by) })
	if at < 0 {
		return nil
	}
	return &cubes[at]
}

// stateName is the name under which the state of a generation is stored.
const stateName = "state"

// cubes are all cubes. Of two cubes that can serve a query, the cheaper one is
// first. A filter or a breakdown needs its attribute; a window needs both days; a
// time series needs the day of the event. A report without a window needs the day
// of the first view, for the rate of new visitors. Referrers and cities have too
// many values to be stored by day. The table exposures answers two attributes:
// cubes of pairs took 18 % of a rebuild.
var cubes = []cube{
	{name: "country", by: []string{"country"}},
	{name: "all by first day", firstDay: true},
	{name: "device by first day", by: []string{"device"}, firstDay: true},
	{name: "visitor_type by first day", by: []string{"visitor_type"}, firstDay: true},
	{name: "browser by first day", by: []string{"browser"}, firstDay: true},
	{name: "os by first day", by: []string{"os"}, firstDay: true},
	{name: "channel by first day", by: []string{"channel"}, firstDay: true},
	{name: "country by first day", by: []string{"country"}, firstDay: true},
	{name: "utm_source by first day", by: []string{"utm_source"}, firstDay: true},
	{name: "utm_medium by first day", by: []string{"utm_medium"}, firstDay: true},
	{name: "utm_campaign by first day", by: []string{"utm_campaign"}, firstDay: true},
	{name: "all by day", day: true},
	{name: "all by both days", firstDay: true, day: true},
	{name: "device by both days", by: []string{"device"}, firstDay: true, day: true},
	{name: "channel by both days", by: []string{"channel"}, firstDay: true, day: true},
	{name: "country by both days", by: []string{"country"}, firstDay: true, day: true},
	{name: "referrer", by: []string{"referrer"}, frequent: true},
	{name: "referrer, ranked", by: []string{"referrer"}, rank: true},
	{name: "city", by: []string{"city"}, frequent: true},
	{name: "city, ranked", by: []string{"city"}, rank: true},
}

// attributeColumns are the columns that cubes group by. visitors.Attributes begins
// with them.
var attributeColumns = []string{
	"device", "country", "channel", "browser", "os", "visitor_type", "referrer", "utm_source", "utm_medium", "utm_campaign",
	"city",
}

// cubesByName are the cubes by all names under which cells are stored.
var cubesByName = newCubesByName()

func newCubesByName() map[string]*cube {
	named := map[string]*cube{}
	for i := range cubes {
		c := &cubes[i]
		named[c.name] = c
		if c.frequent {
			named[c.frequentName()] = c
		}
	}
	return named
}
