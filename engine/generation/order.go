package generation

// Order is the order in which the events of a store become visible, in statements. A refresh
// adds the events between two positions in it.
type Order struct {
	Events       string // table
	Number       string // of a row of events, as Int64: of two copies of an event, the one with the smaller number is the first
	Since, Until string // conditions on a row: after the parameter since, up to the parameter through
	NewPart      string // condition on the name of a part: its first block comes after the parameter since
}

// The orders of events.
var (
	// ByTime is that of a store with one writer: its acceptance times increase.
	ByTime = Order{
		Events: "events",
		Number: "toUnixTimestamp64Milli(ingested_at)",
		Since:  "ingested_at > {since:DateTime64(3, 'UTC')}",
		Until:  "ingested_at <= {through:DateTime64(3, 'UTC')}",
	}
	// ByBlock is that of a single server with several writers, whose clocks differ: the server
	// numbers blocks in the order in which they become visible (schema.EventsEngine). The name
	// of a part has its last block, which excludes the parts without newer events.
	ByBlock = Order{
		Events:  "events",
		Number:  "toInt64(_block_number)",
		Since:   "indexHint(toUInt64(splitByChar('_', _part)[3]) > {since:UInt64}) AND _block_number > {since:UInt64}",
		Until:   "_block_number <= {through:UInt64}",
		NewPart: "toUInt64(splitByChar('_', _part)[2]) > {since:UInt64}",
	}
	// BySet is that of a replica. Its blocks become visible in any order, so a position is the
	// set of the blocks that were visible; see Bounds. The name of a part has its first and its
	// last block: a part within an interval of since has no newer events.
	BySet = Order{
		Events: "events_local",
		Number: "toInt64(_block_number)",
		Since: "indexHint(NOT (roundDown(" + boundOfPart(2) + ", {since:Array(UInt64)}) % 2 = 0 AND roundDown(" + boundOfPart(2) + ", {since:Array(UInt64)}) = roundDown(" + boundOfPart(3) + ", {since:Array(UInt64)})))" +
			" AND roundDown(" + boundOfRow + ", {since:Array(UInt64)}) % 2 = 1",
		Until:   "roundDown(" + boundOfRow + ", {through:Array(UInt64)}) % 2 = 0",
		NewPart: "roundDown(" + boundOfPart(2) + ", {since:Array(UInt64)}) % 2 = 1",
	}
)
