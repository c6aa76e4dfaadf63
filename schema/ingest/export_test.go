package ingest

// FollowBlocksFrom sets the number of events of a batch from which a writer of a shared
// store reads the ids of the others' blocks.
func FollowBlocksFrom(w *Writer, events int) { w.blocks.least = events }
