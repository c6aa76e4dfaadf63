package catalogue

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"time"

	"github.com/goccy/go-yaml"
)

// File returns the catalogue as a file that, applied to the same store,
// changes nothing, and makes an empty one say the same. Tokens and the history
// of shares are not in it.
func (s *Snapshot) File() File {
	var file File
	for _, owned := range s.Accounts() {
		account := owned.Account
		for _, site := range ByID(owned.Websites) {
			account.Websites = append(account.Websites, owned.website(site))
		}
		file.Accounts = append(file.Accounts, account)
	}
	return file
}

func (o *Owned) website(site Website) Website {
	for _, goal := range ByID(o.Goals) {
		if goal.WebsiteID == site.ID {
			site.Goals = append(site.Goals, goal)
		}
	}
	for _, target := range ByID(o.Targets) {
		if target.WebsiteID == site.ID {
			target.Target.CreateDate = dateOf(&target.State.CreateDate)
			site.Targets = append(site.Targets, target.Target)
		}
	}
	for _, campaign := range ByID(o.Campaigns) {
		if campaign.WebsiteID == site.ID {
			campaign.Initial = campaign.initial()
			site.Campaigns = append(site.Campaigns, campaign.Campaign)
		}
	}
	for _, widget := range ByID(o.Widgets) {
		if widget.WebsiteID == site.ID {
			widget.Initial = widget.initial()
			site.Widgets = append(site.Widgets, widget.Widget)
		}
	}
	return site
}

// initial is the state as a file declares it. One that was stopped before the
// start it was planned for has no end that a file could declare.
func (s *State) initial() Initial {
	initial := Initial{Active: s.Active, CreateDate: dateOf(&s.CreateDate), StartDate: dateOf(s.StartDate), EndDate: dateOf(s.EndDate)}
	if s.StartDate != nil && s.EndDate != nil && s.EndDate.Before(*s.StartDate) {
		initial.EndDate = nil
	}
	return initial
}

func dateOf(t *time.Time) *Date {
	if t == nil || t.IsZero() {
		return nil
	}
	return &Date{*t}
}

// MarshalYAML writes the date as parseDate reads it, all milliseconds kept.
func (d Date) MarshalYAML() (any, error) {
	return d.UTC().Format(time.RFC3339Nano), nil
}

// plainText is what YAML can only take for text on one line; its own words,
// such as false, have five letters at most.
var plainText = regexp.MustCompile(`^[A-Za-z]{6,}( [A-Za-z]+)*$`)

// quoted writes a text so that it reads as the same text: the encoder's own
// choice loses line breaks and what YAML reads as something else.
func quoted(text string) ([]byte, error) {
	if plainText.MatchString(text) {
		return []byte(text), nil
	}
	return json.Marshal(text)
}

// Write writes the file as Read reads it.
func (f File) Write(w io.Writer) error {
	text, err := yaml.MarshalWithOptions(f, yaml.IndentSequence(true), yaml.CustomMarshaler(quoted))
	if err != nil {
		return fmt.Errorf("write catalogue: %w", err)
	}
	_, err = w.Write(slices.Concat([]byte("# The whole catalogue but its tokens; lifthouse apply reads it.\n"), text))
	return err
}
