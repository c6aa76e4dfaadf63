package generation

// Order is the order in which the events of a store become visible, in statements. A refresh
// adds the events between two positions in it.
type Order struct {
	Number       string // position of a row of events, as Int64
	Since, Until string // conditions on a row: after the parameter since, up to the parameter through
}

// The orders of events.
var (
	// ByTime is that of a store with one writer: its acceptance times increase.
	ByTime = Order{
		Number: "toUnixTimestamp64Milli(ingested_at)",
		Since:  "ingested_at > {since:DateTime64(3, 'UTC')}",
		Until:  "ingested_at <= {through:DateTime64(3, 'UTC')}",
	}
	// ByBlock is that of a single server with several writers, whose clocks differ: the server
	// numbers blocks in the order in which they become visible (schema.EventsEngine). The name
	// of a part has its last block, which excludes the parts without newer events.
	ByBlock = Order{
		Number: "toInt64(_block_number)",
		Since:  "indexHint(toUInt64(splitByChar('_', _part)[3]) > {since:UInt64}) AND _block_number > {since:UInt64}",
		Until:  "_block_number <= {through:UInt64}",
	}
)
