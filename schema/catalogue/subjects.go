package catalogue

import "lifthouse/schema"

// Subject returns the campaign as the subject of results.
func (c *Campaign) Subject() schema.Subject {
	return schema.Subject{WebsiteID: c.WebsiteID, Kind: schema.SubjectCampaign, ID: c.ID}
}

// Subject returns an experiment of the widget as the subject of results; 0: the widget itself.
func (w *Widget) Subject(experiment int64) schema.Subject {
	return schema.Subject{WebsiteID: w.WebsiteID, Kind: schema.SubjectWidget, ID: w.ID, ExperimentID: experiment}
}

// Subjects returns the campaigns and experiments of the account, in the order of their ids.
func (o *AccountResources) Subjects() []schema.Subject {
	var subjects []schema.Subject
	for _, c := range ByID(o.Campaigns) {
		subjects = append(subjects, c.Subject())
	}
	for _, w := range ByID(o.Widgets) {
		for _, e := range w.Experiments {
			subjects = append(subjects, w.Subject(e.ID))
		}
	}
	return subjects
}

// SubjectName returns the name of a campaign, or of an experiment with its widget.
func (o *AccountResources) SubjectName(s schema.Subject) string {
	if s.Kind == schema.SubjectCampaign {
		return o.Campaigns[s.ID].Name
	}
	widget := o.Widgets[s.ID]
	name := widget.Name
	for _, e := range widget.Experiments {
		if e.ID == s.ExperimentID && e.Name != "" {
			name += ": " + e.Name
		}
	}
	return name
}
