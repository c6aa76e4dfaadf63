package loadgen

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// growingVisitors are those of the campaigns that grow to the standard one,
// half a power of ten apart.
var growingVisitors = []int{50_000, 158_000, 500_000, 1_580_000}

const (
	growingWebsite = 11 // after those of the standard data set
	growingFirst   = 1001
)

// Growing are campaigns like the large one of the standard data set, of fewer
// visitors, times the scale.
func Growing(scale float64, seed uint64) Scenario {
	s := Standard(scale, seed)
	site := s.Websites[0]
	site.ID, site.Domain = growingWebsite, "growing.example.com"
	like := site.Campaigns[0]
	site.Campaigns = nil
	goals := slices.Clone(site.Goals)
	for i := range goals {
		goals[i].ID += 10 * (growingWebsite - 1)
	}
	site.Goals = goals
	for i, visitors := range growingVisitors {
		like.ID, like.Name, like.PrimaryGoalID = growingFirst+int64(i), fmt.Sprintf("Growing %d", i+1), goals[0].ID
		like.Visitors = int(float64(visitors) * scale)
		site.Campaigns = append(site.Campaigns, like)
	}
	s.Websites = []Website{site}
	return s
}

// GrowingCampaigns are the ids of campaigns that grow, the large one last.
func GrowingCampaigns() []int64 {
	var ids []int64
	for i := range growingVisitors {
		ids = append(ids, growingFirst+int64(i))
	}
	return append(ids, StandardCampaign)
}

// Question is a report that is asked of campaigns of each size.
type Question struct {
	Text   string
	Rounds int // that count, after two to warm up
	// Ask has the campaign's report made.
	Ask func(ctx context.Context, campaign int64) error
}

// Growth is what reports cost by the size of the campaign.
type Growth struct {
	Visitors []int64     `json:"visitors"`
	Rows     []GrowthRow `json:"rows"`
}

// GrowthRow is what one report costs, of each size; medians.
type GrowthRow struct {
	Text   string    `json:"text"`
	WallMS []float64 `json:"wallMs"`
	CPUMS  []float64 `json:"cpuMs"`
}

// MeasureGrowth asks every question of every campaign, one after the other.
func MeasureGrowth(ctx context.Context, visitors []int64, campaigns []int64, questions []Question) (*Growth, error) {
	g := &Growth{Visitors: visitors}
	for _, q := range questions {
		row := GrowthRow{Text: q.Text}
		for _, campaign := range campaigns {
			var costs []Cost
			for range q.Rounds + 2 {
				wall, cpu, err := spent(func() error { return q.Ask(ctx, campaign) })
				if err != nil {
					return nil, fmt.Errorf("%s of campaign %d: %w", q.Text, campaign, err)
				}
				costs = append(costs, Cost{WallMS: milliseconds(wall), CPUMS: milliseconds(cpu)})
			}
			median := medianCost(costs[2:])
			row.WallMS, row.CPUMS = append(row.WallMS, median.WallMS), append(row.CPUMS, median.CPUMS)
		}
		g.Rows = append(g.Rows, row)
	}
	return g, nil
}

// Write shows wall times as a table, with how much more the largest campaign
// costs than the smallest in CPU.
func (g *Growth) Write(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	heads := []string{"wall ms, by visitors"}
	for _, visitors := range g.Visitors {
		heads = append(heads, fmt.Sprint(visitors))
	}
	_, _ = fmt.Fprintln(table, strings.Join(append(heads, "CPU ms", "CPU ×", ""), "\t"))
	for i := range g.Rows {
		row := &g.Rows[i]
		cells := []string{row.Text}
		for _, wall := range row.WallMS {
			cells = append(cells, fmt.Sprintf("%.1f", wall))
		}
		_, _ = fmt.Fprintln(table, strings.Join(append(cells, fmt.Sprintf("%.1f", row.Largest()), fmt.Sprintf("%.2f", row.Grows()), ""), "\t"))
	}
	return table.Flush()
}

// Largest is the CPU that the largest campaign costs, in milliseconds.
func (r *GrowthRow) Largest() float64 { return r.CPUMS[len(r.CPUMS)-1] }

// Grows is how many times the CPU of the smallest campaign the largest costs.
func (r *GrowthRow) Grows() float64 { return r.Largest() / r.CPUMS[0] }
