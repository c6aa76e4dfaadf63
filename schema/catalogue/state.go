package catalogue

import (
	"maps"
	"time"
)

// State is what happened to a campaign or a widget since it was created.
type State struct {
	Active     bool       `json:"active"`
	CreateDate time.Time  `json:"createDate"`
	UpdateDate time.Time  `json:"updateDate"`
	StartDate  *time.Time `json:"startDate,omitempty"`
	EndDate    *time.Time `json:"endDate,omitempty"`
	// ShareHistory are the shares as they changed, of a campaign under 0, of a
	// widget's experiments under their ids.
	ShareHistory map[int64][]SharesSince `json:"shareHistory,omitempty"`
}

// Shares give each variation's weight; under 0 stands control's percentage.
type Shares map[int64]int

// SharesSince are the shares from an instant on.
type SharesSince struct {
	Since  time.Time `json:"since"`
	Shares Shares    `json:"shares"`
}

// Current are the shares that hold now for a campaign (0) or an experiment; nil
// where none were recorded.
func (s *State) Current(experiment int64) Shares {
	history := s.ShareHistory[experiment]
	if len(history) == 0 {
		return nil
	}
	return history[len(history)-1].Shares
}

// record notes shares that are not the current ones.
func (s *State) record(shares map[int64]Shares, now time.Time) {
	for experiment, given := range shares {
		if maps.Equal(s.Current(experiment), given) {
			continue
		}
		if s.ShareHistory == nil {
			s.ShareHistory = map[int64][]SharesSince{}
		}
		s.ShareHistory[experiment] = append(s.ShareHistory[experiment], SharesSince{Since: now, Shares: given})
	}
}
