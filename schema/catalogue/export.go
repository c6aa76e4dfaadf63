package catalogue

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"
)

// CatalogueFile returns the catalogue as a file. Applying the file to the same store
// changes nothing; applying it to an empty store creates the same catalogue. The
// file contains no tokens and no history of shares.
func (s *Snapshot) CatalogueFile() File {
	var file File
	for _, owned := range s.AllAccounts() {
		file.Accounts = append(file.Accounts, owned.CatalogueFile().Accounts...)
	}
	return file
}

// CatalogueFile is like Snapshot.CatalogueFile, of one account.
func (o *AccountResources) CatalogueFile() File {
	account := o.Account
	for _, site := range ByID(o.Websites) {
		account.Websites = append(account.Websites, o.exportWebsite(site))
	}
	for _, hook := range ByID(o.Webhooks) {
		account.Webhooks = append(account.Webhooks, hook.Webhook)
	}
	return File{Accounts: []Account{account}}
}

func (o *AccountResources) exportWebsite(site Website) Website {
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
			campaign.Initial = campaign.initialState()
			site.Campaigns = append(site.Campaigns, campaign.Campaign)
		}
	}
	for _, widget := range ByID(o.Widgets) {
		if widget.WebsiteID == site.ID {
			widget.Initial = widget.initialState()
			site.Widgets = append(site.Widgets, widget.Widget)
		}
	}
	return site
}

// initialState returns the state as a file declares it. A resource that was stopped
// before its planned start has an end before its start, which a file cannot
// declare, so the end is omitted.
func (s *State) initialState() Initial {
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

// MarshalYAML returns the date in RFC 3339 with milliseconds.
func (d Date) MarshalYAML() (any, error) {
	return d.UTC().Format(time.RFC3339Nano), nil
}

// WriteYAML writes the file as YAML that ReadYAML can read.
func (f File) WriteYAML(w io.Writer) error {
	text, err := yaml.Dump(f, yaml.WithCompactSeqIndent(false), yaml.WithLineWidth(-1), yaml.WithQuotePreference(yaml.QuoteDouble))
	if err != nil {
		return fmt.Errorf("write catalogue: %w", err)
	}
	_, err = w.Write(slices.Concat([]byte("# The whole catalogue except tokens, for lifthouse apply.\n"), text))
	return err
}

// WriteJSON writes the file as JSON with the field names of YAML. ReadYAML can read it.
func (f File) WriteJSON(w io.Writer) error {
	var text bytes.Buffer
	if err := f.WriteYAML(&text); err != nil {
		return err
	}
	var fields any
	if err := yaml.Load(text.Bytes(), &fields); err != nil {
		return fmt.Errorf("write catalogue: %w", err)
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(fields)
}
