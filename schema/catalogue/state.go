package catalogue

import "time"

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

// record notes shares that divide the traffic otherwise than the current ones,
// as a change or, where they correct, in place of the whole history. It says
// whether the history is another one.
func (s *State) record(shares map[int64]Shares, now time.Time, correct bool) bool {
	recorded := false
	for experiment, given := range shares {
		history := s.ShareHistory[experiment]
		same := len(history) > 0 && s.Current(experiment).divideAs(given)
		if same && (!correct || len(history) == 1) {
			continue
		}
		since := now
		if correct && len(history) > 0 {
			since, history = history[0].Since, nil
		}
		if s.ShareHistory == nil {
			s.ShareHistory = map[int64][]SharesSince{}
		}
		s.ShareHistory[experiment] = append(history, SharesSince{Since: since, Shares: given})
		recorded = true
	}
	return recorded
}

// divideAs says whether both give every variation the same fraction of the
// visitors: weights of 33 and 33 divide as 50 and 50 do.
func (s Shares) divideAs(other Shares) bool {
	if s[0] != other[0] {
		return false
	}
	mine, others := s.weights(), other.weights()
	if s[0] == 100 || mine == 0 || others == 0 {
		return s[0] == 100 || mine == others
	}
	for _, shares := range []Shares{s, other} {
		for variation := range shares {
			if variation != 0 && s[variation]*others != other[variation]*mine {
				return false
			}
		}
	}
	return true
}

// weights is what the variations' weights add up to.
func (s Shares) weights() int {
	sum := -s[0]
	for _, weight := range s {
		sum += weight
	}
	return sum
}
