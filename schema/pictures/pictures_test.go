package pictures_test

import (
	"bytes"
	"context"
	"embed"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"

	"lifthouse/schema/documents"
	"lifthouse/schema/faults"
	"lifthouse/schema/pictures"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

//go:embed testdata
var files embed.FS

// readWebP returns a file of testdata.
func readWebP(tb testing.TB, name string) []byte {
	tb.Helper()
	return must.Get(files.ReadFile("testdata/" + name + ".webp"))(tb)
}

// noise returns a picture that can hardly be compressed.
func noise(width, height int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(m.Pix) // never fails
	for i := 3; i < len(m.Pix); i += 4 {
		m.Pix[i] = 255
	}
	return m
}

// writePNG returns a picture as PNG.
func writePNG(tb testing.TB, m image.Image) []byte {
	tb.Helper()
	var b bytes.Buffer
	must.OK(tb, png.Encode(&b, m))
	return b.Bytes()
}

// writeJPEG returns a picture as JPEG.
func writeJPEG(tb testing.TB, m image.Image) []byte {
	tb.Helper()
	var b bytes.Buffer
	must.OK(tb, jpeg.Encode(&b, m, nil))
	return b.Bytes()
}

// declarePNG returns a PNG of 1 kB that says that it has so many pixels a side.
func declarePNG(width, height uint32) []byte {
	header := binary.BigEndian.AppendUint32([]byte("IHDR"), width)
	header = binary.BigEndian.AppendUint32(header, height)
	header = append(header, 8, 2, 0, 0, 0)
	file := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), header...)
	file = binary.BigEndian.AppendUint32(file, crc32.ChecksumIEEE(header))
	return append(file, make([]byte, 1<<10-len(file))...)
}

// TestPicturesAreEncodedAgain stores pictures of each format. They are JPEG of at most 1,200 pixels a side.
func TestPicturesAreEncodedAgain(t *testing.T) {
	for name, of := range map[string]struct {
		sent          []byte
		width, height int
	}{
		"PNG":            {writePNG(t, image.NewNRGBA(image.Rect(0, 0, 300, 200))), 300, 200},
		"JPEG":           {writeJPEG(t, noise(300, 200)), 300, 200},
		"lossy WebP":     {readWebP(t, "lossy"), 150, 100},
		"lossless WebP":  {readWebP(t, "lossless"), 75, 100},
		"a pixel":        {writePNG(t, image.NewGray(image.Rect(0, 0, 1, 1))), 1, 1},
		"wide":           {writePNG(t, image.NewGray(image.Rect(0, 0, 8000, 3000))), 1200, 450},
		"high":           {writePNG(t, image.NewGray(image.Rect(0, 0, 1500, 3000))), 600, 1200},
		"a line":         {writePNG(t, image.NewGray(image.Rect(0, 0, 8000, 1))), 1200, 1},
		"16 bits a part": {writePNG(t, image.NewNRGBA64(image.Rect(0, 0, 30, 20))), 30, 20},
	} {
		made, body, err := pictures.New(t.Context(), 7, "Ada", of.sent)
		must.OK(t, err, name)
		check.That(t, documents.IsID(made.ID), "%s: %q", name, made.ID)
		check.Equal(t, made.AccountID, 7, name)
		check.Equal(t, made.MediaType, "image/jpeg", name)
		config, format, err := image.DecodeConfig(bytes.NewReader(body))
		must.OK(t, err, name)
		check.Equal(t, format, "jpeg", name)
		check.Equal(t, config.Width, of.width, "%s: width", name)
		check.Equal(t, config.Height, of.height, "%s: height", name)
		again, _, err := pictures.New(t.Context(), 7, "Eve", of.sent)
		must.OK(t, err, name)
		check.Equal(t, again.ID, made.ID, name)
	}
}

// TestPicturesWithoutColorAreWhite encodes transparent pixels, which JPEG does not have.
func TestPicturesWithoutColorAreWhite(t *testing.T) {
	_, body, err := pictures.New(t.Context(), 1, "", writePNG(t, image.NewNRGBA(image.Rect(0, 0, 8, 8))))
	must.OK(t, err)
	at := color.GrayModel.Convert(must.Get(jpeg.Decode(bytes.NewReader(body)))(t).At(4, 4))
	check.Equal(t, at.(color.Gray).Y, 255)
}

// TestOnlyPixelsAreStored sends pictures with a script in them and after them. What is stored has none.
func TestOnlyPixelsAreStored(t *testing.T) {
	const script = "<script>alert(1)</script>"
	plain := writePNG(t, noise(20, 20))
	text := append([]byte("tEXtComment\x00"), script...)
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(text)-4))
	chunk = binary.BigEndian.AppendUint32(append(chunk, text...), crc32.ChecksumIEEE(text))
	const afterHeader = 8 + 25
	withText := append(append(bytes.Clone(plain[:afterHeader]), chunk...), plain[afterHeader:]...)
	photo := writeJPEG(t, noise(20, 20))
	exif := append([]byte("\xff\xe1\x00\x23Exif\x00\x00\x00\x00"), script...)
	withEXIF := append(append(bytes.Clone(photo[:2]), exif...), photo[2:]...)
	ids := map[string]bool{}
	for name, sent := range map[string][]byte{
		"PNG, after it": append(bytes.Clone(plain), script...), "PNG, text": withText,
		"JPEG, after it": append(bytes.Clone(photo), script...), "JPEG, EXIF": withEXIF,
		"WebP, after it": append(bytes.Clone(readWebP(t, "lossy")), script...),
	} {
		must.That(t, bytes.Contains(sent, []byte(script)), "%s", name)
		made, body, err := pictures.New(t.Context(), 1, "", sent)
		must.OK(t, err, name)
		check.That(t, !bytes.Contains(body, []byte("script")), "%s: the script is stored", name)
		check.That(t, !bytes.Contains(body, []byte("Exif")), "%s: EXIF is stored", name)
		check.That(t, !ids[made.ID], "%s: an id twice", name)
		ids[made.ID] = true
	}
}

// TestWrongPictures sends what is no picture, or one that is too large. Nothing is decoded beyond the header of those
// that are too large.
func TestWrongPictures(t *testing.T) {
	var animation bytes.Buffer
	must.OK(t, gif.Encode(&animation, noise(4, 4), nil))
	half := func(of []byte) []byte { return of[:len(of)/2] }
	huge := bytes.Clone(readWebP(t, "lossy"))
	binary.LittleEndian.PutUint16(huge[26:], 16_383) // the width
	const whole = "must be a whole picture"
	for name, of := range map[string]struct {
		sent []byte
		want string
	}{
		"empty":              {nil, "must be a PNG, JPEG or WebP picture; it is empty"},
		"text":               {[]byte("picture"), "must be a PNG, JPEG or WebP picture"},
		"SVG":                {[]byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`), "must be a PNG, JPEG or WebP picture"},
		"GIF":                {animation.Bytes(), "must be a PNG, JPEG or WebP picture"},
		"too many bytes":     {make([]byte, 4<<20+1), "must have at most 4194304 bytes; it has 4194305"},
		"40,000 x 40,000":    {declarePNG(40_000, 40_000), "must have at most 8000 pixels a side"},
		"8,001 x 1":          {declarePNG(8001, 1), "must have at most 8000 pixels a side"},
		"8,000 x 3,001":      {declarePNG(8000, 3001), "must have at most 24 million pixels"},
		"no pixels":          {declarePNG(0, 8), whole},
		"WebP of 16,383 x":   {huge, "must have at most 8000 pixels a side"},
		"PNG header":         {declarePNG(10, 10), whole},
		"half a PNG":         {half(writePNG(t, noise(40, 40))), whole},
		"half a JPEG":        {half(writeJPEG(t, noise(40, 40))), whole},
		"half a WebP":        {half(readWebP(t, "lossy")), whole},
		"half lossless WebP": {half(readWebP(t, "lossless")), whole},
		"begin of a PNG":     {[]byte("\x89PNG\r\n\x1a\n"), whole},
		"begin of a JPEG":    {[]byte("\xff\xd8"), whole},
	} {
		_, _, err := pictures.New(t.Context(), 1, "", of.sent)
		found, isList := errors.AsType[faults.List](err)
		must.That(t, isList && len(found) == 1, "%s: %v", name, err)
		check.Equal(t, found[0].Name, "picture", name)
		check.That(t, strings.HasPrefix(found[0].Detail, of.want), "%s: %q", name, found[0].Detail)
	}
}

// TestDecodingEndsWithItsContext decodes a picture for a request that has ended.
func TestDecodingEndsWithItsContext(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	end()
	_, _, err := pictures.New(ctx, 1, "", writeJPEG(t, noise(40, 40)))
	check.That(t, errors.Is(err, context.Canceled), "%v", err)
}

// TestPicturesAreShrunk makes the worst picture that is stored as small as a readout needs it.
func TestPicturesAreShrunk(t *testing.T) {
	_, body, err := pictures.New(t.Context(), 1, "", writeJPEG(t, noise(1200, 1200)))
	must.OK(t, err)
	for _, most := range []int{len(body), 100_000, 10_000, 1000} {
		small := must.Get(pictures.Shrink(body, most))(t)
		check.That(t, len(small) <= most, "%d bytes, want at most %d", len(small), most)
		check.That(t, len(small)*3 > most, "%d bytes, of at most %d", len(small), most)
		again := must.Get(pictures.Shrink(body, most))(t)
		check.That(t, bytes.Equal(small, again), "other bytes")
	}
}

// FuzzPictures decodes anything. It is a picture that a browser reads, or has a fault.
func FuzzPictures(f *testing.F) {
	for _, sent := range [][]byte{
		writePNG(f, noise(9, 9)), writeJPEG(f, noise(9, 9)), readWebP(f, "lossy"), readWebP(f, "lossless"),
		declarePNG(40_000, 40_000), []byte("<svg/>"), nil,
	} {
		f.Add(sent)
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		_, body, err := pictures.New(t.Context(), 1, "", sent)
		if err != nil {
			_, isList := errors.AsType[faults.List](err)
			check.That(t, isList, "%v", err)
			return
		}
		must.Get(jpeg.Decode(bytes.NewReader(body)))(t)
	})
}
