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

// placed is a resource of a website, which may have a key.
type placed interface {
	place() (website int64, key string)
}

func (g Goal) place() (website int64, key string)     { return g.WebsiteID, g.Key }
func (t Target) place() (website int64, key string)   { return t.WebsiteID, "" }
func (c Campaign) place() (website int64, key string) { return c.WebsiteID, c.Key }
func (w Widget) place() (website int64, key string)   { return w.WebsiteID, "" }

// ids are known ids with their keys; empty: without one.
type ids map[int64]string

// declaredOf returns the ids of the resources of a website.
func declaredOf[R placed](resources map[int64]R, website int64) ids {
	found := ids{}
	for id, r := range resources {
		if owner, key := r.place(); owner == website {
			found[id] = key
		}
	}
	return found
}
