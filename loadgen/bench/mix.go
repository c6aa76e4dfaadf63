package bench

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Kind is a kind of request.
type Kind string

// The kinds. Each kind is measured separately.
const (
	Dashboard Kind = "dashboard" // polls the same results with If-None-Match
	Opened    Kind = "opened"    // requests the same results without If-None-Match, as a newly opened dashboard
	Uncached  Kind = "uncached"  // results of small campaigns that bypass the cache
	Filtered  Kind = "filtered"  // results with filters that rarely repeat
	Breakdown Kind = "breakdown" // results by dimension
	Series    Kind = "series"    // results by day or week
	List      Kind = "list"      // lists of campaigns, widgets and goals
	Bulk      Kind = "bulk"      // the reports of all campaigns and experiments at once
	BulkShort Kind = "bulkShort" // all results without fields of reports
	BulkPoll  Kind = "bulkPoll"  // polls the reports of all with If-None-Match
	Ingest    Kind = "ingest"    // small batches of events
)

// Kinds lists all kinds in display order.
var Kinds = []Kind{Dashboard, Opened, Uncached, Filtered, Breakdown, Series, List, Bulk, BulkShort, BulkPoll, Ingest}

// Mix has the relative frequency of each kind.
type Mix map[Kind]int

// Presets are the named mixes. They send no events.
var Presets = map[string]Mix{
	"cached":   {Dashboard: 80, Opened: 20},
	"uncached": {Uncached: 100},
	"analyst":  {Filtered: 60, Breakdown: 25, Series: 10, List: 5},
	"bulk":     {Opened: 94, Bulk: 1, BulkShort: 2, BulkPoll: 3},
	"mixed":    {Dashboard: 70, Filtered: 10, Breakdown: 8, Series: 2, List: 10},
}

// ParseMix parses the name of a preset, or kinds with weights such as
// dashboard=70,list=30. The error lists all problems.
func ParseMix(text string) (Mix, error) {
	if preset, ok := Presets[text]; ok {
		return preset, nil
	}
	mix := Mix{}
	total := 0
	var problems []string
	for part := range strings.SplitSeq(text, ",") {
		name, number, _ := strings.Cut(strings.TrimSpace(part), "=")
		weight, err := strconv.Atoi(number)
		switch _, repeated := mix[Kind(name)]; {
		case !slices.Contains(Kinds, Kind(name)):
			problems = append(problems, fmt.Sprintf("%q: must be a preset (cached, uncached, analyst, mixed, bulk) or KIND=WEIGHT with a kind of %v", part, Kinds))
		case err != nil || weight < 0 || weight > 1_000_000:
			problems = append(problems, fmt.Sprintf("%q: weight must be an integer from 0 to 1000000, as in %s=10", part, name))
		case repeated:
			problems = append(problems, fmt.Sprintf("%q: %s is repeated", part, name))
		default:
			mix[Kind(name)] = weight
			total += weight
		}
	}
	if len(problems) == 0 && total == 0 {
		problems = append(problems, fmt.Sprintf("%q: at least one weight must be positive", text))
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("invalid mix: %s", strings.Join(problems, "; "))
	}
	return mix, nil
}

// String formats the mix as ParseMix parses it.
func (m Mix) String() string {
	var parts []string
	for _, kind := range Kinds {
		if m[kind] > 0 {
			parts = append(parts, fmt.Sprintf("%s=%d", kind, m[kind]))
		}
	}
	return strings.Join(parts, ",")
}

func (m Mix) totalWeight() int {
	total := 0
	for _, weight := range m {
		total += weight
	}
	return total
}

// drawKind draws a kind.
func (m Mix) drawKind(random *rand.Rand) Kind {
	n := random.IntN(m.totalWeight())
	for _, kind := range Kinds {
		n -= m[kind]
		if n < 0 {
			return kind
		}
	}
	panic("unreachable: n is less than the sum of the weights")
}
