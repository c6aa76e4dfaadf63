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

// CatalogueFile returns the catalogue as a file. Applying the file to the same store changes nothing; applying it to an
// empty store creates the same catalogue. The file contains no tokens and no history of shares.
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
		site.Goals = definitionsOf(o.Goals, site.ID, func(g Goal) Goal { return g })
		site.Targets = definitionsOf(o.Targets, site.ID, func(t LiveTarget) Target {
			t.Target.CreateDate = dateOf(&t.State.CreateDate)
			return t.Target
		})
		site.Campaigns = definitionsOf(o.Campaigns, site.ID, func(c LiveCampaign) Campaign {
			c.Initial = c.initialState()
			return c.Campaign
		})
		site.Widgets = definitionsOf(o.Widgets, site.ID, func(w LiveWidget) Widget {
			w.Initial = w.initialState()
			return w.Widget
		})
		account.Websites = append(account.Websites, site)
	}
	for _, hook := range ByID(o.Webhooks) {
		account.Webhooks = append(account.Webhooks, hook.Webhook)
	}
	return File{Accounts: []Account{account}}
}

// definitionsOf returns the definitions of a website's resources, ordered by id.
func definitionsOf[R Placed, D any](resources map[int64]R, website int64, define func(R) D) (all []D) {
	for _, r := range ByID(resources) {
		if owner, _ := r.Place(); owner == website {
			all = append(all, define(r))
		}
	}
	return all
}

// initialState returns the state as a file declares it. A resource that was stopped before its planned start has an end
// before its start, which a file cannot declare, so the end is omitted.
func (s *State) initialState() Initial {
	initial := Initial{
		Active: s.Active, CreateDate: dateOf(&s.CreateDate), StartDate: dateOf(s.StartDate), EndDate: dateOf(s.EndDate),
	}
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
	style := []yaml.Option{
		yaml.WithCompactSeqIndent(false), yaml.WithLineWidth(-1), yaml.WithQuotePreference(yaml.QuoteDouble),
	}
	var file yaml.Node
	text, err := yaml.Dump(f, style...)
	if err == nil {
		err = yaml.Load(text, &file)
	}
	if err == nil {
		writeKeys(file.Content[0])
		text, err = yaml.Dump(&file, style...)
	}
	if err != nil {
		return fmt.Errorf("write catalogue: %w", err)
	}
	_, err = w.Write(slices.Concat([]byte("# For lifthouse apply; without tokens.\n"), text))
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
