package columnar

import (
	"github.com/klauspost/compress/zstd"
	parquetzstd "github.com/parquet-go/parquet-go/compress/zstd"
)

// pageCodec compresses pages. The library's own has each of its encoders hold 16 MB
// to look back in, of which a page, which is compressed by itself, needs a
// fraction.
var pageCodec = &codec{encoder: newEncoder()}

type codec struct {
	parquetzstd.Codec
	encoder *zstd.Encoder
}

func newEncoder() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault),
		zstd.WithWindowSize(pageWindow), zstd.WithLowerEncoderMem(true), zstd.WithZeroFrames(true), zstd.WithEncoderCRC(false))
	if err != nil {
		panic("columnar: " + err.Error()) // the options are constants
	}
	return e
}

// pageWindow is as large as the pages of most columns.
const pageWindow = 1 << 19

// Encode appends nothing to dst: it is the place of the result.
func (c *codec) Encode(dst, src []byte) ([]byte, error) {
	return c.encoder.EncodeAll(src, dst[:0]), nil
}
