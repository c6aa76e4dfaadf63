package measure

import (
	"context"
	"fmt"
)

// Query is a report that GrowthOf requests for campaigns of each size.
type Query struct {
	Name   string
	Rounds int // measured rounds, after warmUpRounds
	// Run computes the report of the campaign.
	Run func(ctx context.Context, campaign int64) error
}

// warmUpRounds is the number of rounds that are not measured.
const warmUpRounds = 2

// Growth is the cost of reports by campaign size.
type Growth struct {
	Visitors []int64     `json:"visitors"` // of each campaign
	Rows     []GrowthRow `json:"rows"`     // one per query
}

// GrowthRow has the median costs of one query, one per campaign.
type GrowthRow struct {
	Name   string    `json:"name"`
	WallMS []float64 `json:"wallMs"`
	CPUMS  []float64 `json:"cpuMs"`
}

// GrowthOf measures each query for each campaign, one after the other. visitors has
// the number of visitors of each campaign, in increasing order.
func GrowthOf(ctx context.Context, visitors []int64, campaigns []int64, queries []Query) (*Growth, error) {
	g := &Growth{Visitors: visitors}
	for _, q := range queries {
		row := GrowthRow{Name: q.Name}
		for _, campaign := range campaigns {
			var costs []Cost
			for range q.Rounds + warmUpRounds {
				cost, err := RunTimed(func() error { return q.Run(ctx, campaign) })
				if err != nil {
					return nil, fmt.Errorf("%s of campaign %d: %w", q.Name, campaign, err)
				}
				costs = append(costs, cost)
			}
			median := Median(costs[warmUpRounds:])
			row.WallMS = append(row.WallMS, median.WallMS)
			row.CPUMS = append(row.CPUMS, median.CPUMS)
		}
		g.Rows = append(g.Rows, row)
	}
	return g, nil
}

// LargestCPU returns the CPU time of the largest campaign, in milliseconds.
func (r *GrowthRow) LargestCPU() float64 { return r.CPUMS[len(r.CPUMS)-1] }

// CPURatio returns the CPU time of the largest campaign divided by the CPU time
// of the smallest campaign.
func (r *GrowthRow) CPURatio() float64 { return r.LargestCPU() / r.CPUMS[0] }
