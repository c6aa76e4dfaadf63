package catalogue

import "cmp"

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
			var named struct{ Name, Domain, URL string }
			a.decodeRow(&r, &named)
			a.changes = append(a.changes, Change{AccountID: r.AccountID, Kind: string(r.Kind), ID: r.ID, Name: cmp.Or(named.Name, named.Domain, named.URL), Archived: true})
		}
	}
}
