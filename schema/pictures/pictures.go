// Package pictures makes pictures that people send safe to show: it decodes them and encodes them again as JPEG, so
// that nothing but their pixels is left.
package pictures

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	_ "image/png" // registers PNG
	"io"
	"math"
	"time"

	"lifthouse/schema/documents"
	"lifthouse/schema/faults"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp" // registers WebP
)

// The limits of a picture that is sent. MaxPixels bounds the memory of one that is decoded, of up to 8 bytes a pixel.
const (
	MaxBytes  = 4 << 20
	MaxSide   = 8000
	MaxPixels = 24_000_000
)

// The pictures that are stored.
const (
	storedSide    = 1200 // at most
	storedQuality = 82   // of JPEG
)

// maxDecodeTime is how long a picture may take to be decoded. A JPEG of many scans takes long.
const maxDecodeTime = 10 * time.Second

// Types are the media types of pictures that may be sent, by the names of their formats.
var Types = map[string]string{"png": "image/png", "jpeg": documents.JPEG, "webp": "image/webp"}

// The name of a picture in faults, and what it must be.
const (
	Name     = "picture"
	mustBe   = "must be a PNG, JPEG or WebP picture"
	mustBeOK = "must be a whole picture"
)

// New returns a stored picture of an account with its body. The error is a faults.List if the bytes are no picture, or
// one that is too large. The id is a hash of the bytes as they were sent, so that it does not depend on the release
// that encoded them again.
func New(ctx context.Context, account int64, by string, sent []byte) (of documents.Document, body []byte, err error) {
	body, err = normalize(ctx, sent)
	if err != nil {
		return of, nil, err
	}
	now := time.Now()
	return documents.Document{
		AccountID: account, ID: documents.NewID([]byte(documents.Picture), sent), Kind: documents.Picture,
		EndedAt: now, MadeAt: now, MadeBy: by, MediaType: documents.JPEG,
	}, body, nil
}

// FormatOf returns the name of the format of a picture; empty: it has none of Types.
func FormatOf(sent []byte) string {
	_, format, err := image.DecodeConfig(bytes.NewReader(sent))
	if _, isKnown := Types[format]; err != nil || !isKnown {
		return ""
	}
	return format
}

// normalize decodes a picture, makes it smaller if it is larger than storedSide, and encodes it as JPEG.
func normalize(ctx context.Context, sent []byte) ([]byte, error) {
	if err := findFaults(sent).Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, maxDecodeTime)
	defer cancel()
	decoded, _, err := image.Decode(&reader{ctx, bytes.NewReader(sent)})
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, oneFault("", "takes too long to decode: save it as a plain JPEG or PNG")
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, oneFault("", mustBeOK+": "+err.Error())
	}
	return encode(scale(decoded, storedSide), storedQuality)
}

// reader reads until its context ends. So decoding ends, too.
type reader struct {
	ctx  context.Context //nolint:containedctx // image.Decode has no context
	from io.Reader
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(p)
}

// oneFault returns a list with a fault of a picture.
func oneFault(value, detail string) faults.List {
	return faults.List{{Name: Name, Value: value, Detail: detail}}
}

// findFaults returns what is wrong with a picture, as far as its header says.
func findFaults(sent []byte) faults.List {
	if len(sent) == 0 {
		return oneFault("", mustBe+"; it is empty")
	}
	if len(sent) > MaxBytes {
		return oneFault("", fmt.Sprintf("must have at most %d bytes; it has %d", MaxBytes, len(sent)))
	}
	config, format, err := image.DecodeConfig(bytes.NewReader(sent))
	_, isKnown := Types[format]
	switch {
	case errors.Is(err, image.ErrFormat), err == nil && !isKnown:
		return oneFault("", mustBe)
	case err != nil:
		return oneFault("", mustBeOK+": "+err.Error())
	}
	size := fmt.Sprintf("%d x %d", config.Width, config.Height)
	switch {
	case config.Width < 1 || config.Height < 1:
		return oneFault(size, "must have pixels")
	case config.Width > MaxSide || config.Height > MaxSide:
		return oneFault(size, fmt.Sprintf("must have at most %d pixels a side", MaxSide))
	case config.Width*config.Height > MaxPixels:
		return oneFault(size, fmt.Sprintf("must have at most %d million pixels", MaxPixels/1_000_000))
	}
	return nil
}

// scale returns a picture on white, of at most so many pixels a side.
func scale(from image.Image, most int) *image.RGBA {
	size := from.Bounds().Size()
	if longest := max(size.X, size.Y); longest > most {
		by := float64(most) / float64(longest)
		size.X = max(1, int(math.Round(float64(size.X)*by)))
		size.Y = max(1, int(math.Round(float64(size.Y)*by)))
	}
	to := image.NewRGBA(image.Rectangle{Max: size})
	draw.Draw(to, to.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src)
	if size == from.Bounds().Size() {
		draw.Draw(to, to.Bounds(), from, from.Bounds().Min, draw.Over)
	} else {
		draw.CatmullRom.Scale(to, to.Bounds(), from, from.Bounds(), draw.Over, nil)
	}
	return to
}

// encode returns a picture as JPEG.
func encode(of image.Image, quality int) ([]byte, error) {
	var body bytes.Buffer
	if err := jpeg.Encode(&body, of, &jpeg.Options{Quality: quality}); err != nil {
		return nil, fmt.Errorf("encode the picture: %w", err)
	}
	return body.Bytes(), nil
}

// Shrink returns a stored picture as JPEG of at most so many bytes, and of fewer pixels if it had more bytes. A picture
// has at least 16 pixels a side, or as many as it had, even if these are more bytes.
func Shrink(body []byte, most int) ([]byte, error) {
	const (
		smallest = 16
		step     = 0.8
	)
	if len(body) <= most {
		return body, nil
	}
	decoded, err := jpeg.Decode(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("decode the picture: %w", err)
	}
	size := decoded.Bounds().Size()
	for side := float64(max(size.X, size.Y)); len(body) > most && side*step >= smallest; {
		// Pixels are about proportional to bytes. The first attempt is a little too large.
		side *= min(step, math.Sqrt(float64(most)/float64(len(body)))+0.1)
		body, err = encode(scale(decoded, max(smallest, int(side))), storedQuality)
		if err != nil {
			return nil, err
		}
	}
	return body, nil
}
