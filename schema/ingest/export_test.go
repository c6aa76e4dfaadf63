package ingest

// FollowBlocksFrom sets the number of events of a batch from which a writer of a shared
// store reads the ids of the others' blocks, and the number of stored events up to which
// it waits until their ids are read.
func FollowBlocksFrom(w *Writer, least int, few uint64) { w.blocks.least, w.blocks.few = least, few }

// ListCopies makes a writer remove copies as on a cluster, by statements that list them.
func ListCopies(w *Writer) { w.readsTables = false }

// CopyInBatches is CopyEvents with another size of batches.
var CopyInBatches = copyEvents
