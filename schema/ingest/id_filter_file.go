package ingest

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/bits-and-blooms/bloom/v3"
	"github.com/cespare/xxhash/v2"
)

// A process that ends cleanly saves its filter in a file, 60 MB for up to 50 million ids
// and 180 MB for more, so that the next one need not read all ids: for 55 million events
// that takes both cores 20 seconds, 60 MB of the file take 0.2. The next process reads the
// file at its first write, and deletes it before, so that the file never lacks ids after a
// kill. A process that writes nothing leaves it.

// idsMagic is the beginning of the file. It changes with its format.
const idsMagic uint64 = 0x4c48_4944_0000_0002

// leastSavedIDs is the number of events from which their ids are saved. Fewer are read in a
// second.
const leastSavedIDs = 2_000_000

// idsHeader is the header of the file. It identifies the stored events: without a deletion
// their number and their last acceptance time are only equal if the events are, and a
// filter may have more ids than the store.
type idsHeader struct {
	Magic, Events  uint64
	Accepted       int64 // in milliseconds since 1970
	Filters        uint64
	Free, Capacity int64
	Checksum       uint64 // of the fields above
}

func (h *idsHeader) checksum() uint64 {
	return xxhash.Sum64String(fmt.Sprint(h.Magic, h.Events, h.Accepted, h.Filters, h.Free, h.Capacity))
}

// storedHeader returns a header with the stored events.
func (w *Writer) storedHeader(ctx context.Context) (idsHeader, error) {
	h := idsHeader{Magic: idsMagic}
	if err := w.conn.QueryRow(ctx, "SELECT count() FROM events").Scan(&h.Events); err != nil {
		return h, fmt.Errorf("count the events: %w", err)
	}
	var accepted time.Time
	if err := w.conn.QueryRow(ctx, newestEvent, clickhouse.Named("website_id", int64(0))).Scan(&accepted); err != nil {
		return h, fmt.Errorf("read the acceptance time of the last event: %w", err)
	}
	h.Accepted = accepted.UnixMilli()
	return h, nil
}

// UseSavedIDs reports whether the file has the ids of the stored events. The first write
// then reads them. Otherwise it deletes the file. It must be called after SetExclusive and
// before the first write.
func (w *Writer) UseSavedIDs(ctx context.Context, path string) (bool, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read saved event ids: %w", err)
	}
	var saved idsHeader
	unread := errors.Join(binary.Read(file, binary.LittleEndian, &saved), file.Close())
	stored, err := w.storedHeader(ctx)
	if err != nil {
		return false, err
	}
	if unread != nil || saved.Checksum != saved.checksum() || saved.Magic != idsMagic || saved.Events != stored.Events || saved.Accepted != stored.Accepted {
		return false, os.Remove(path)
	}
	w.savedIDs = path
	return true, nil
}

// readSavedIDs reads the saved ids before the first write. If the file is damaged, every
// event is looked up. The caller holds writeLock.
func (w *Writer) readSavedIDs(ctx context.Context) error {
	if w.savedIDs == "" {
		return nil
	}
	file, err := os.Open(w.savedIDs)
	if err != nil {
		return fmt.Errorf("read saved event ids: %w", err)
	}
	defer func() { _ = file.Close() }()
	if err := os.Remove(w.savedIDs); err != nil {
		return fmt.Errorf("delete saved event ids: %w", err)
	}
	w.savedIDs = ""
	if err := w.idFilter.readFrom(file); err != nil {
		slog.WarnContext(ctx, "saved event ids are damaged; until the next start, each event is looked up in the store", "err", err)
	}
	return nil
}

// SaveIDs saves the ids in a file if they are complete. Nothing may be written after it.
func (w *Writer) SaveIDs(ctx context.Context, path string) (err error) {
	if !w.exclusive || w.savedIDs != "" || !w.idFilter.hasVisitors() {
		return nil
	}
	header, err := w.storedHeader(ctx)
	if err != nil {
		return err
	}
	if header.Events < w.leastSaved {
		return nil
	}
	temporary := path + ".new"
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("save event ids: %w", err)
	}
	if err = errors.Join(w.idFilter.writeTo(file, header), file.Close()); err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("save event ids: %w", err), os.Remove(temporary))
	}
	return nil
}

// writeTo writes the header, the filters, and a checksum of both.
func (f *idFilter) writeTo(file io.Writer, header idsHeader) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	header.Filters, header.Free, header.Capacity = uint64(len(f.filters)), int64(f.free), int64(f.capacity)
	header.Checksum = header.checksum()
	buffered, sum := bufio.NewWriterSize(file, 1<<20), xxhash.New()
	to := io.MultiWriter(buffered, sum)
	if err := binary.Write(to, binary.LittleEndian, header); err != nil {
		return err
	}
	for _, filter := range f.filters {
		if _, err := filter.WriteTo(to); err != nil {
			return err
		}
	}
	if err := binary.Write(buffered, binary.LittleEndian, sum.Sum64()); err != nil {
		return err
	}
	return buffered.Flush()
}

// readFrom replaces the filters by those of a file, unless it is damaged.
func (f *idFilter) readFrom(file io.ReadSeeker) error {
	if err := checkSum(file); err != nil {
		return err
	}
	buffered := bufio.NewReaderSize(file, 1<<20)
	var header idsHeader
	if err := binary.Read(buffered, binary.LittleEndian, &header); err != nil {
		return err
	}
	filters := make([]*bloom.BloomFilter, header.Filters)
	for i := range filters {
		filters[i] = new(bloom.BloomFilter)
		if _, err := filters[i].ReadFrom(buffered); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.filters, f.free, f.capacity, f.complete, f.visitors = filters, int(header.Free), int(header.Capacity), true, true
	return nil
}

// checkSum compares the checksum at the end of a file with its content, and returns to its
// beginning. The sizes of the filters must not be trusted before.
func checkSum(file io.ReadSeeker) error {
	const size = 8
	content, err := file.Seek(-size, io.SeekEnd)
	if err != nil {
		return err
	}
	var want uint64
	if err := binary.Read(file, binary.LittleEndian, &want); err != nil {
		return err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	sum := xxhash.New()
	if _, err := io.CopyN(sum, file, content); err != nil {
		return err
	}
	if sum.Sum64() != want {
		return errors.New("the checksum is wrong")
	}
	_, err = file.Seek(0, io.SeekStart)
	return err
}
