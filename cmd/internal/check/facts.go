package check

import (
	"context"
	"fmt"
	"time"

	"lifthouse/cmd/internal/terminal"
	"lifthouse/engine/facts"
)

// checkFacts checks that the facts of a shard can be read. In a deep check, it also checks that they match the events.
func (r *Report) checkFacts(ctx context.Context, shard *facts.Refresher, number, shards int) {
	where := ""
	if shards > 1 {
		where = fmt.Sprintf("of shard %d ", number)
	}
	at, err := shard.OpenFacts(ctx)
	switch {
	case err != nil:
		r.Fault("facts", err)
		return
	case at.Through == 0:
		r.OK("facts", "%sare empty", where)
		return
	}
	r.OK("facts", "%sinclude the events accepted until %s", where, at.FoldedThrough().Format(time.RFC3339))
	if !r.Deep {
		return
	}
	visitors, faults, err := VerifyFacts(ctx, shard, func(float64) {})
	for _, fault := range append(faults, err) {
		if fault != nil {
			r.Fault("facts", fault)
		}
	}
	if err == nil && len(faults) == 0 {
		r.OK("facts", "%sof all %s are those of their events", where, terminal.CountWithNoun(visitors, "visitor"))
	}
}

// VerifyFacts compares the facts of a shard with its events. It returns the number of visitors, and an error
// with the remedy for each kind of difference. progress is called with the share that has been compared.
func VerifyFacts(ctx context.Context, shard *facts.Refresher, progress func(share float64)) (visitors int, faults []error, err error) {
	found, err := shard.VerifyFacts(ctx, progress)
	if err != nil {
		return 0, nil, err
	}
	if found.Wrong > 0 {
		remedy := ", lifthouse facts --rebuild at once"
		if len(found.Lost) > 0 { // only the facts still count what is lost
			remedy = ""
		}
		faults = append(faults, fmt.Errorf("the facts of %s are not those of their events: a server corrects them within a day%s",
			terminal.CountWithNoun(found.Wrong, "visitor"), remedy))
	}
	if len(found.Lost) > 0 {
		faults = append(faults, fmt.Errorf("stored events of %s are lost; reports keep what they counted: "+
			"restore a backup (lifthouse restore), or send the events again; to accept the loss: lifthouse facts --rebuild --accept-loss N", terminal.CountWithNoun(len(found.Lost), "visitor")))
	}
	return found.Visitors, faults, nil
}
