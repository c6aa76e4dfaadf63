package catalogue

import "time"

// State is what happened to a campaign or a widget since it was created.
type State struct {
	Active       bool          `json:"active"`
	CreateDate   time.Time     `json:"createDate"`
	UpdateDate   time.Time     `json:"updateDate"`
	StartDate    *time.Time    `json:"startDate,omitempty"`
	EndDate      *time.Time    `json:"endDate,omitempty"`
	ShareHistory []SharesSince `json:"shareHistory,omitempty"`
}

// Shares give each variation's weight; under 0 stands control's percentage.
type Shares map[int64]int

// SharesSince are the shares from an instant on.
type SharesSince struct {
	Since  time.Time `json:"since"`
	Shares Shares    `json:"shares"`
}

// Current are the shares that hold now; nil where none were recorded.
func (s *State) Current() Shares {
	if len(s.ShareHistory) == 0 {
		return nil
	}
	return s.ShareHistory[len(s.ShareHistory)-1].Shares
}
