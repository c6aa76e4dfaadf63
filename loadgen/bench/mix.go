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

// The kinds. They are measured apart, since a mean over them says nothing.
const (
	Dashboard Kind = "dashboard" // the same results again and again, by a page that has them already
	Opened    Kind = "opened"    // the same, by a page that was just opened and has nothing
	Uncached  Kind = "uncached"  // results of small campaigns, to be computed anew
	Filtered  Kind = "filtered"  // an analyst's question that is seldom asked twice
	Breakdown Kind = "breakdown"
	Series    Kind = "series"
	List      Kind = "list"
	Ingest    Kind = "ingest" // a small batch of events
)

// Kinds are all kinds, in the order in which they are shown.
var Kinds = []Kind{Dashboard, Opened, Uncached, Filtered, Breakdown, Series, List, Ingest}

// Mix is how often each kind is asked, relative to the others.
type Mix map[Kind]int

// Presets are mixes with a name.
var Presets = map[string]Mix{
	"cached":   {Dashboard: 80, Opened: 20},
	"uncached": {Uncached: 100},
	"analyst":  {Filtered: 60, Breakdown: 25, Series: 10, List: 5},
	"mixed":    {Dashboard: 70, Filtered: 10, Breakdown: 8, Series: 2, List: 8, Ingest: 2},
}

// ParseMix reads a preset's name, or kinds with weights: dashboard=70,list=30.
// All faults are told at once.
func ParseMix(text string) (Mix, error) {
	if preset, ok := Presets[text]; ok {
		return preset, nil
	}
	mix, total := Mix{}, 0
	var faults []string
	for part := range strings.SplitSeq(text, ",") {
		name, number, _ := strings.Cut(strings.TrimSpace(part), "=")
		weight, err := strconv.Atoi(number)
		switch _, twice := mix[Kind(name)]; {
		case !slices.Contains(Kinds, Kind(name)):
			faults = append(faults, fmt.Sprintf("%q: want one of %v with its weight, or cached, uncached, analyst or mixed", part, Kinds))
		case err != nil || weight < 0 || weight > 1_000_000:
			faults = append(faults, fmt.Sprintf("%q: want a weight from 0 to 1000000, as in %s=10", part, name))
		case twice:
			faults = append(faults, fmt.Sprintf("%q: %s stands twice", part, name))
		default:
			mix[Kind(name)] = weight
			total += weight
		}
	}
	if len(faults) == 0 && total == 0 {
		faults = append(faults, fmt.Sprintf("%q: want a weight above 0", text))
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("mix: %s", strings.Join(faults, "; "))
	}
	return mix, nil
}

// String writes the mix as ParseMix reads it.
func (m Mix) String() string {
	var parts []string
	for _, kind := range Kinds {
		if m[kind] > 0 {
			parts = append(parts, fmt.Sprintf("%s=%d", kind, m[kind]))
		}
	}
	return strings.Join(parts, ",")
}

func (m Mix) total() int {
	total := 0
	for _, weight := range m {
		total += weight
	}
	return total
}

// pick draws a kind.
func (m Mix) pick(random *rand.Rand) Kind {
	at := random.IntN(m.total())
	for _, kind := range Kinds {
		if at -= m[kind]; at < 0 {
			return kind
		}
	}
	panic("unreachable: the weights add up to the total")
}
