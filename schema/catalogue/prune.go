package catalogue

// pruneResources archives the current resources that the file does not name, of the accounts
// that it may change. The tokens of an archived account are archived too.
func (a *applier) pruneResources(current []row) {
	for _, r := range current {
		account := key{r.AccountID, kindAccount, r.AccountID, partDefinition}
		if r.Archived || a.named[r.key] || r.Kind == kindToken && a.named[account] || !a.declares.mayChange(r.AccountID) {
			continue
		}
		a.rows = append(a.rows, r.archivedVersion())
		if r.Part == partDefinition {
			a.changes = append(a.changes, Change{AccountID: r.AccountID, Kind: string(r.Kind), ID: r.ID, Name: a.known.nameOf(r), Archived: true})
		}
	}
}

// nameOf returns the name of the row's resource; for a website, it is the domain.
func (s *Snapshot) nameOf(r row) string {
	owned := s.AccountResources(r.AccountID)
	switch r.Kind {
	case kindAccount:
		return owned.Name
	case kindWebsite:
		return owned.Websites[r.ID].Domain
	case kindGoal:
		return owned.Goals[r.ID].Name
	case kindTarget:
		return owned.Targets[r.ID].Name
	case kindCampaign:
		return owned.Campaigns[r.ID].Name
	case kindWidget:
		return owned.Widgets[r.ID].Name
	case kindWebhook:
		return owned.Webhooks[r.ID].URL
	case kindToken:
	}
	return ""
}
