package facts

import (
	"context"
	"fmt"
	"log/slog"

	"lifthouse/engine/fold"
	"lifthouse/engine/moments"
	"lifthouse/engine/source"
	"lifthouse/schema"
)

// readReadable returns all events of visitors that were accepted until a time, by visitor, and the visitors whose
// events can be read. If a block of events is damaged, it halves the visitors until it knows whose events are in that
// block: facts of the others go on. A build has no use for some of the visitors, and returns the error.
func (r *Refresher) readReadable(
	ctx context.Context, visitors []schema.Visitor, through int64,
) (events []fold.Event, readable []schema.Visitor, err error) {
	if len(visitors) == 0 {
		return nil, nil, nil
	}
	events, err = r.turn.on.readEvents(ctx, visitors, through)
	switch {
	case err == nil:
		r.published.setUnreadable(visitors, false)
		return events, visitors, nil
	case !source.IsDamaged(err) || r.building > 0:
		return nil, nil, err
	case len(visitors) == 1:
		if r.published.setUnreadable(visitors, true) {
			slog.ErrorContext(ctx, "stored events of a visitor cannot be read, so new ones are in no report: "+
				"find the damage with lifthouse check --deep, and restore a backup", "visitor", visitors[0], "err", err)
		}
		return nil, nil, nil
	}
	half := len(visitors) / 2
	for _, part := range [][]schema.Visitor{visitors[:half], visitors[half:]} {
		some, of, err := r.readReadable(ctx, part, through)
		if err != nil {
			return nil, nil, err
		}
		events = append(events, some...)
		readable = append(readable, of...)
	}
	return events, readable, nil
}

// DamageOf returns which data of a subject and its website are lost or damaged, as far as this process knows.
func (s Shards) DamageOf(of schema.Subject) (all moments.Damage) {
	for _, shard := range s {
		d := shard.published.damageOf(of)
		all.Lost += d.Lost
		all.Unreadable += d.Unreadable
		all.WrongSums = all.WrongSums || d.WrongSums
	}
	return all
}

// DescribeDamage returns a sentence for each kind of lost or damaged data that this process knows, with the remedy.
func (s Shards) DescribeDamage() (sentences []string) {
	var all damageCounts
	for _, shard := range s {
		of := shard.published.countDamage()
		all.lost += of.lost
		all.unreadable += of.unreadable
		all.wrong += of.wrong
	}
	if all.lost > 0 {
		sentences = append(sentences, fmt.Sprintf("stored events of %d visitors are lost; reports keep what they "+
			"counted: restore a backup (lifthouse restore), or send the events again", all.lost))
	}
	if all.unreadable > 0 {
		sentences = append(sentences, fmt.Sprintf("stored events of %d visitors cannot be read: find the damage with "+
			"lifthouse check --deep, and restore a backup (lifthouse restore)", all.unreadable))
	}
	if all.wrong > 0 {
		sentences = append(sentences, fmt.Sprintf("sums of %d subjects in the facts are wrong: rebuild the facts "+
			"(lifthouse facts --rebuild)", all.wrong))
	}
	return sentences
}
