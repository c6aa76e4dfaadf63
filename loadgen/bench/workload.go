package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"strconv"
	"time"
)

// workload generates tasks. Equal seeds generate equal tasks, except for the
// ids of events, which are unique to a run.
type workload struct {
	mix      Mix
	targets  *targets
	random   *rand.Rand
	runID    string // prefix of the ids of visitors and events
	now      func() time.Time
	visitors int
	weights  []float64 // cumulative weights of the campaigns
}

func newWorkload(o *Options, t *targets) *workload {
	w := &workload{
		mix: o.Mix, targets: t, random: rand.New(rand.NewPCG(o.Seed, 1)),
		runID: "bench-" + strconv.FormatInt(time.Now().UnixNano(), 36), now: time.Now,
	}
	sum := 0.0
	for _, f := range t.campaigns {
		sum += math.Sqrt(float64(f.Views + 1))
		w.weights = append(w.weights, sum)
	}
	return w
}

// allReports is the path of the reports of all campaigns and experiments.
const allReports = "/v1/results?field=report"

func (w *workload) nextTask() task {
	t := task{kind: w.mix.drawKind(w.random)}
	switch t.kind {
	case Dashboard:
		t.path = drawFrom(w.random, w.targets.results)
		t.conditional = true
	case Opened:
		t.path = drawFrom(w.random, w.targets.results)
	case Uncached:
		small := drawFrom(w.random, w.targets.small)
		t.path = small.resultsPath("")
		t.noCache = true
	case Filtered:
		t.path = w.filteredPath()
	case Breakdown:
		f := w.drawCampaign()
		t.path = f.resultsPath("dimension=" + drawFrom(w.random, []string{"device", "country", "channel", "referrer"}) + "&" + w.drawMetric())
	case Series:
		f := w.drawCampaign()
		t.path = f.resultsPath("interval=" + drawFrom(w.random, []string{"day", "week"}) + "&" + w.drawMetric())
	case List:
		t.path = drawFrom(w.random, w.targets.lists)
	case Bulk:
		t.path = allReports
	case BulkShort:
		t.path = "/v1/results"
	case BulkPoll:
		t.path = allReports
		t.conditional = true
	case Ingest:
		t.path = "/events"
		t.events = w.drawBatch()
	}
	return t
}

// drawCampaign draws a campaign with a probability proportional to the square root
// of its views. So both large and small campaigns occur often.
func (w *workload) drawCampaign() *campaign {
	x := w.random.Float64() * w.weights[len(w.weights)-1]
	for i, cumulative := range w.weights {
		if x < cumulative {
			return &w.targets.campaigns[i]
		}
	}
	panic("unreachable: x is less than the last cumulative weight")
}

func (w *workload) drawMetric() string {
	return "compareMetric=" + drawFrom(w.random, []string{"goalConversionRate", "valuePerVisitor", "profitPerVisitor"})
}

// filteredPath returns a path of results with filters: one or two attributes,
// often a window, sometimes a goal value or a z-score.
func (w *workload) filteredPath() string {
	f := w.drawCampaign()
	query := url.Values{}
	for range 1 + w.random.IntN(2) {
		name := drawFrom(w.random, []string{"device", "country", "referrer", "visitorType"})
		values := w.targets.values[name]
		switch {
		case len(values) == 0:
		case name == "device" || name == "country":
			query.Set("filters["+name+"][]", drawFrom(w.random, values))
		default:
			query.Set("filters["+name+"]", drawFrom(w.random, values))
		}
	}
	start := f.CreateDate
	if f.StartDate != nil {
		start = *f.StartDate
	}
	if days := int(w.now().Sub(start).Hours() / 24); days > 2 && w.random.IntN(2) == 0 {
		from := w.random.IntN(days - 1)
		query.Set("filters[dateFrom]", start.AddDate(0, 0, from).Format(time.DateOnly))
		query.Set("filters[dateTo]", start.AddDate(0, 0, from+1+w.random.IntN(days-from)).Format(time.DateOnly))
	}
	switch w.random.IntN(8) {
	case 0:
		query.Set("filters[goalValue]", strconv.Itoa(5+w.random.IntN(100)))
	case 1:
		query.Set("filters[zScore]", drawFrom(w.random, []string{"3", "4", "5"}))
	}
	return f.resultsPath(w.drawMetric() + "&" + query.Encode())
}

// drawBatch returns the events of one to three new visitors as JSON lines.
func (w *workload) drawBatch() []byte {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	campaign := w.targets.ingest
	for range 1 + w.random.IntN(3) {
		w.visitors++
		visitor := fmt.Sprintf("%s-%d", w.runID, w.visitors)
		variation := int64(0)
		if n := w.random.IntN(1 + len(campaign.Variations)); n > 0 {
			variation = campaign.Variations[n-1].ID
		}
		e := map[string]any{
			"time": w.now().UnixMilli(), "websiteId": campaign.websiteID, "visitor": visitor, "campaignId": campaign.ID, "variationId": variation,
			"visitorType": drawFrom(w.random, w.targets.values["visitorType"]),
		}
		for _, attribute := range []string{"device", "country"} {
			if values := w.targets.values[attribute]; len(values) > 0 {
				e[attribute] = drawFrom(w.random, values)
			}
		}
		for view := range 1 + w.random.IntN(3) {
			e["eventId"] = fmt.Sprintf("%s/%d", visitor, view)
			e["event"] = "view"
			_ = encoder.Encode(e) // numbers and texts in memory: no error is possible
		}
		if campaign.PrimaryGoalID != 0 && w.random.IntN(10) == 0 {
			e["eventId"] = visitor + "/goal"
			e["event"] = "goal"
			e["goalId"] = campaign.PrimaryGoalID
			e["value"] = float64(100+w.random.IntN(20_000)) / 100
			_ = encoder.Encode(e)
		}
	}
	return lines.Bytes()
}

func drawFrom[T any](random *rand.Rand, values []T) T { return values[random.IntN(len(values))] }
