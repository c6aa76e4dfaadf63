package population

import "lifthouse/schema/catalogue"

// CatalogueFile returns the catalogue of the scenario's websites, goals, campaigns
// and widgets, in the format that lifthouse apply reads.
func (s *Scenario) CatalogueFile() catalogue.File {
	account := catalogue.Account{ID: s.Account, Name: "Made by loadgen"}
	for i := range s.Websites {
		account.Websites = append(account.Websites, s.catalogueWebsite(&s.Websites[i]))
	}
	return catalogue.File{Accounts: []catalogue.Account{account}}
}

func (s *Scenario) catalogueWebsite(from *Website) catalogue.Website {
	site := catalogue.Website{ID: from.ID, Domain: from.Domain}
	initial := catalogue.Initial{Active: true, CreateDate: &s.Start, StartDate: &s.Start}
	for i, g := range from.Goals {
		site.Goals = append(site.Goals, catalogue.Goal{ID: g.ID, WebsiteID: site.ID, Name: g.Name, Default: i == 0})
	}
	for _, c := range from.Campaigns {
		campaign := catalogue.Campaign{
			ID: c.ID, WebsiteID: site.ID, Name: c.Name, Type: "experiment", ControlShare: c.ControlShare, TrafficAllocation: 100, TargetMode: "live",
			PrimaryGoalID: c.PrimaryGoalID, SignificanceLevel: 95, Methodology: catalogue.Frequentist, Power: 80, MDE: 20,
			Initial: initial,
		}
		for i, v := range c.Variations {
			campaign.Variations = append(campaign.Variations, catalogue.Variation{ID: v.ID, Name: v.Name, Share: v.Share, Order: i + 1})
		}
		site.Campaigns = append(site.Campaigns, campaign)
	}
	for _, w := range from.Widgets {
		widget := catalogue.Widget{ID: w.ID, WebsiteID: site.ID, Name: w.Name, Type: "popup", PrimaryGoalID: w.PrimaryGoalID, Initial: initial}
		for _, e := range w.Experiments {
			experiment := catalogue.Experiment{
				ID: e.ID, Name: e.Name, PrimaryMetric: e.PrimaryMetric, ControlShare: e.ControlShare, Active: true, CreateDate: &s.Start, StartDate: &s.Start,
			}
			for _, v := range e.Variations {
				experiment.Variations = append(experiment.Variations, catalogue.WidgetVariation{ID: v.ID, Name: v.Name, Share: v.Share})
			}
			widget.Experiments = append(widget.Experiments, experiment)
		}
		site.Widgets = append(site.Widgets, widget)
	}
	return site
}
