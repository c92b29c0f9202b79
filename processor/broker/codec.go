package broker

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Codec is a compression of record batches; the value is the wire's.
type Codec int8

// The five codecs that Kafka has.
const (
	None   Codec = 0
	Gzip   Codec = 1
	Snappy Codec = 2
	LZ4    Codec = 3
	Zstd   Codec = 4
)

// String is the name Kafka's configuration uses.
func (c Codec) String() string {
	switch c {
	case None:
		return "none"
	case Gzip:
		return "gzip"
	case Snappy:
		return "snappy"
	case LZ4:
		return "lz4"
	case Zstd:
		return "zstd"
	}
	return fmt.Sprintf("codec %d", int8(c))
}

// maxBatchBytes bounds one batch after decompression.
const maxBatchBytes = 128 << 20

// compressor holds what compressing needs and is dear to make. It is for one
// goroutine at a time. Encoders are made on first use and belong to their
// owner: shared ones would carry channels across synctest bubbles.
type compressor struct {
	lz4  lz4.Compressor
	zstd *zstd.Encoder
	gzip *gzip.Writer
}

// compress appends src, compressed, to dst.
func (c *compressor) compress(dst []byte, codec Codec, src []byte) ([]byte, error) {
	switch codec {
	case None:
		return append(dst, src...), nil
	case Gzip:
		out := bytes.NewBuffer(dst)
		if c.gzip == nil {
			c.gzip = gzip.NewWriter(out)
		}
		c.gzip.Reset(out)
		if _, err := c.gzip.Write(src); err != nil {
			return nil, err
		}
		err := c.gzip.Close()
		return out.Bytes(), err
	case Snappy:
		return append(dst, snappy.Encode(nil, src)...), nil
	case LZ4:
		return c.lz4Frame(dst, src)
	case Zstd:
		if c.zstd == nil {
			var err error
			c.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
			if err != nil {
				return nil, err
			}
		}
		return c.zstd.EncodeAll(src, dst), nil
	}
	return nil, fmt.Errorf("broker: %v", codec)
}

// The LZ4 frame that Kafka's clients write: version 1, independent blocks of
// 64 KiB, no checksums but the header's.
// Source: https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md
const (
	lz4Magic      = 0x184D2204
	lz4BlockSize  = 64 << 10
	lz4RawBlock   = 1 << 31 // flag in a block's size: stored as it is
	lz4HeaderSize = 7
)

func (c *compressor) lz4Frame(dst, src []byte) ([]byte, error) {
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, lz4Magic)
	dst = append(dst, 0x60, 0x40, 0x82) // flags, block size, checksum of the two
	for len(src) > 0 {
		block := src[:min(len(src), lz4BlockSize)]
		src = src[len(block):]
		at := len(dst)
		dst = append(dst, make([]byte, 4+lz4.CompressBlockBound(len(block)))...)
		n, err := c.lz4.CompressBlock(block, dst[at+4:])
		if err != nil {
			return nil, err
		}
		size := uint32(n)
		if n == 0 || n >= len(block) {
			n = copy(dst[at+4:], block)
			size = uint32(n) | lz4RawBlock
		}
		le.PutUint32(dst[at:], size)
		dst = dst[:at+4+n]
	}
	return le.AppendUint32(dst, 0), nil
}

// decompressor is compressor's counterpart, with the same ownership.
type decompressor struct {
	zstd *zstd.Decoder
	gzip *gzip.Reader
}

// decompress appends src, decompressed, to dst, which it may outgrow. The
// result is at most maxBatchBytes longer.
func (d *decompressor) decompress(dst []byte, codec Codec, src []byte) ([]byte, error) {
	var err error
	switch codec {
	case None:
		return append(dst, src...), nil
	case Gzip:
		dst, err = d.gunzip(dst, src)
	case Snappy:
		dst, err = unsnap(dst, src)
	case LZ4:
		dst, err = unlz4(dst, src)
	case Zstd:
		if d.zstd == nil {
			d.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1),
				zstd.WithDecoderMaxMemory(maxBatchBytes), zstd.WithDecodeAllCapLimit(false))
			if err != nil {
				return nil, err
			}
		}
		dst, err = d.zstd.DecodeAll(src, dst)
	default:
		return nil, fmt.Errorf("%w: a batch compressed with %v", ErrCorrupt, codec)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: decompressing %v: %w", ErrCorrupt, codec, err)
	}
	return dst, nil
}

var errTooLarge = fmt.Errorf("more than %d bytes", maxBatchBytes)

func (d *decompressor) gunzip(dst, src []byte) (_ []byte, err error) {
	in := bytes.NewReader(src)
	if d.gzip == nil {
		d.gzip, err = gzip.NewReader(in)
	} else {
		err = d.gzip.Reset(in)
	}
	if err != nil {
		return nil, err
	}
	out := bytes.NewBuffer(dst)
	n, err := io.Copy(out, io.LimitReader(d.gzip, maxBatchBytes+1))
	if n > maxBatchBytes {
		return nil, errTooLarge
	}
	return out.Bytes(), err
}

// xerialMagic starts the framing that Java's snappy library puts around blocks:
// 16 bytes of header, then a big-endian size before each block.
const xerialMagic = "\x82SNAPPY\x00"

func unsnap(dst, src []byte) ([]byte, error) {
	if !bytes.HasPrefix(src, []byte(xerialMagic)) {
		return unsnapBlock(dst, src, maxBatchBytes)
	}
	if len(src) < 16 {
		return nil, io.ErrUnexpectedEOF
	}
	src = src[16:]
	start := len(dst)
	for len(src) > 0 {
		if len(src) < 4 {
			return nil, io.ErrUnexpectedEOF
		}
		size := uint64(binary.BigEndian.Uint32(src))
		src = src[4:]
		if size > uint64(len(src)) {
			return nil, io.ErrUnexpectedEOF
		}
		var err error
		dst, err = unsnapBlock(dst, src[:size], maxBatchBytes-(len(dst)-start))
		if err != nil {
			return nil, err
		}
		src = src[size:]
	}
	return dst, nil
}

// unsnapBlock decodes one block of at most limit bytes. A block cannot grow
// more than about 22-fold, which keeps a size that lies from allocating.
func unsnapBlock(dst, src []byte, limit int) ([]byte, error) {
	n, err := snappy.DecodedLen(src)
	if err != nil {
		return nil, err
	}
	if n > limit || n > 64*(len(src)+1) {
		return nil, errTooLarge
	}
	at := len(dst)
	dst = append(dst, make([]byte, n)...)
	_, err = snappy.Decode(dst[at:], src)
	return dst, err
}

// lz4Header is what an LZ4 frame's header says of its blocks.
type lz4Header struct {
	blockMax int  // bytes of a block, decompressed
	trailer  int  // bytes of checksum after a block; the batch has its own
	linked   bool // blocks refer to the ones before
}

// cutLZ4Header takes the header off a frame.
func cutLZ4Header(src []byte) (h lz4Header, rest []byte, err error) {
	if len(src) < lz4HeaderSize || binary.LittleEndian.Uint32(src) != lz4Magic {
		return h, nil, io.ErrUnexpectedEOF
	}
	flags, sizeCode := src[4], src[5]>>4&7
	size := lz4HeaderSize
	if flags&0x08 != 0 {
		size += 8 // content size
	}
	if flags&0x01 != 0 {
		size += 4 // dictionary id
	}
	if sizeCode < 4 || len(src) < size {
		return h, nil, io.ErrUnexpectedEOF
	}
	h.blockMax = 1 << (8 + 2*sizeCode) // 4: 64 KiB … 7: 4 MiB
	if flags&0x10 != 0 {
		h.trailer = 4
	}
	h.linked = flags&0x20 == 0
	return h, src[size:], nil
}

func unlz4(dst, src []byte) ([]byte, error) {
	h, src, err := cutLZ4Header(src)
	if err != nil {
		return nil, err
	}
	start := len(dst)
	for {
		if len(src) < 4 {
			return nil, io.ErrUnexpectedEOF
		}
		size := binary.LittleEndian.Uint32(src)
		src = src[4:]
		if size == 0 {
			return dst, nil
		}
		n := int(size &^ lz4RawBlock)
		if n+h.trailer > len(src) || n > h.blockMax {
			return nil, io.ErrUnexpectedEOF
		}
		block := src[:n]
		src = src[n+h.trailer:]
		if size&lz4RawBlock != 0 {
			dst = append(dst, block...)
		} else if dst, err = unlz4Block(dst, block, start, h); err != nil {
			return nil, err
		}
		if len(dst)-start > maxBatchBytes {
			return nil, errTooLarge
		}
	}
}

// unlz4Block appends one block of a frame that began at start in dst. A linked
// block refers to the 64 KiB before it.
func unlz4Block(dst, block []byte, start int, h lz4Header) ([]byte, error) {
	at := len(dst)
	room := min(h.blockMax, 255*len(block)+16) // no block can grow more
	if cap(dst)-at < room {
		grown := make([]byte, at, max(2*cap(dst), at+room))
		copy(grown, dst)
		dst = grown
	}
	var n int
	var err error
	if h.linked {
		n, err = lz4.UncompressBlockWithDict(block, dst[at:at+room], dst[max(start, at-lz4BlockSize):at])
	} else {
		n, err = lz4.UncompressBlock(block, dst[at:at+room])
	}
	if err != nil {
		return nil, err
	}
	return dst[:at+n], nil
}
