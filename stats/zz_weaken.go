package stats

// WeakenAcrossCells is temporary.
func WeakenAcrossCells(cells [][]Comparison, o Options) [][]Comparison { return cells }
