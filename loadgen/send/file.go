package send

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"lifthouse/loadgen/population"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// WriteNDJSON writes all events as JSON lines.
func WriteNDJSON(ctx context.Context, s *population.Scenario, w io.Writer, report Report) (Progress, error) {
	var p Progress
	err := population.GenerateEvents(ctx, s, population.EncodeNDJSON, func(batch population.Batch[[]byte]) error {
		p.addCounts(batch.Visitors, batch.Events, len(batch.Data))
		report(p)
		_, err := w.Write(batch.Data)
		return err
	})
	return p, err
}

// WriteFile writes all events to the file, or to stdout if path is "-". The
// format is Parquet if path ends in .parquet and JSON lines otherwise. JSON
// lines are compressed if path ends in .gz or .zst.
func WriteFile(ctx context.Context, s *population.Scenario, path string, stdout io.Writer, report Report) (Progress, error) {
	if path == "-" {
		return WriteNDJSON(ctx, s, stdout, report)
	}
	file, err := os.Create(path) //nolint:gosec // the user names the file
	if err != nil {
		return Progress{}, err
	}
	p, err := writeFormat(ctx, s, path, file, report)
	return p, errors.Join(err, file.Close())
}

func writeFormat(ctx context.Context, s *population.Scenario, path string, file io.Writer, report Report) (Progress, error) {
	var compressor io.WriteCloser
	switch {
	case strings.HasSuffix(path, ".parquet"):
		return writeParquet(ctx, s, file, report)
	case strings.HasSuffix(path, ".gz"):
		compressor = gzip.NewWriter(file)
	case strings.HasSuffix(path, ".zst"):
		encoder, err := zstd.NewWriter(file)
		if err != nil {
			return Progress{}, err
		}
		compressor = encoder
	default:
		return WriteNDJSON(ctx, s, file, report)
	}
	p, err := WriteNDJSON(ctx, s, compressor, report)
	return p, errors.Join(err, compressor.Close())
}
